import { expect, test } from 'vitest';
import { SymbolBatches } from './symbol-batches.ts';
import type { SymbolAnswer, SymbolRequest } from './symbol-service.ts';

const requestOf = (fileId: string): SymbolRequest => ({ fileId, path: '', addresses: new Float64Array(0) });
const answerOf = ({ fileId }: SymbolRequest): SymbolAnswer => ({ kind: 'unreadable', reason: fileId });

/** Answers at most `most` of each message, and none of one that holds the bad file. */
function create(most = 10) {
  const messages: string[] = [];
  const batches = new SymbolBatches({
    async request(files) {
      messages.push(files.map(({ fileId }) => fileId).join(' '));
      if (files.some(({ fileId }) => fileId === 'bad')) throw new Error('it took the worker down');
      return files.slice(0, most).map(answerOf);
    },
  });
  const ask = async (...ids: string[]): Promise<unknown[]> => {
    const answers = await Promise.allSettled(ids.map((id) => batches.ask(requestOf(id))));
    return answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message));
  };
  return { batches, ask, messages };
}

test('files that are asked for in one turn go in one message', async () => {
  const { batches, ask, messages } = create();
  const later = Promise.resolve().then(() => batches.ask(requestOf('c')));
  expect(await ask('a', 'b')).toEqual(['a', 'b'].map((id) => answerOf(requestOf(id))));
  expect(await later).toEqual(answerOf(requestOf('c')));
  expect(await ask('d')).toHaveLength(1);
  expect(messages).toEqual(['a b c', 'd']);
});

test('those that there was no time for are asked for again', async () => {
  const { ask, messages } = create(2);
  expect(await ask('a', 'b', 'c')).toEqual(['a', 'b', 'c'].map((id) => answerOf(requestOf(id))));
  expect(messages).toEqual(['a b c', 'c']);
});

test('one that takes the worker down costs only itself', async () => {
  const { ask, messages } = create();
  const [a, b] = ['a', 'b'].map((id) => answerOf(requestOf(id)));
  expect(await ask('a', 'bad', 'b')).toEqual([a, 'it took the worker down', b]);
  expect(messages).toEqual(['a bad b', 'a', 'bad', 'b']);
  expect(await ask('bad')).toEqual(['it took the worker down']);
});

test('a file that may take long goes alone', async () => {
  const { batches, ask, messages } = create();
  const others = ask('a', 'b');
  expect(await batches.askAlone(requestOf('large'))).toEqual(answerOf(requestOf('large')));
  await others;
  expect(messages).toEqual(['large', 'a b']);
});
