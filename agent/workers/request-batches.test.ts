import { setImmediate as immediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RequestBatches } from './request-batches.ts';

/** Answers at most `most` of each message, and none of one that holds the bad request. */
function create(most = 10) {
  const messages: string[] = [];
  const batches = new RequestBatches<string, string>({
    async request(requests) {
      messages.push(requests.join(' '));
      await immediate();
      if (requests.includes('bad')) throw new Error('it took the worker down');
      return requests.slice(0, most).map((request) => request.toUpperCase());
    },
  });
  const ask = async (...requests: string[]): Promise<string[]> => {
    const answers = await Promise.allSettled(requests.map((request) => batches.ask(request)));
    return answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : answer.reason.message));
  };
  return { batches, ask, messages };
}

test('what is asked for in one turn goes in one message', async () => {
  const { batches, ask, messages } = create();
  const later = Promise.resolve().then(() => batches.ask('c'));
  expect(await ask('a', 'b')).toEqual(['A', 'B']);
  expect(await later).toBe('C');
  expect(await ask('d')).toEqual(['D']);
  expect(messages).toEqual(['a b c', 'd']);
});

test('what is asked for while a message is under way goes together in the next one', async () => {
  const { ask, messages } = create();
  const answers: Promise<string[]>[] = [];
  for (const request of ['a', 'b', 'c']) {
    answers.push(ask(request));
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
  expect((await Promise.all(answers)).flat()).toEqual(['A', 'B', 'C']);
  expect(messages).toEqual(['a', 'b c']);
});

test('those that there was no time for are asked for again', async () => {
  const { ask, messages } = create(2);
  expect(await ask('a', 'b', 'c')).toEqual(['A', 'B', 'C']);
  expect(messages).toEqual(['a b c', 'c']);
});

test('one that takes the worker down costs only itself', async () => {
  const { ask, messages } = create();
  expect(await ask('a', 'bad', 'b')).toEqual(['A', 'it took the worker down', 'B']);
  expect(messages).toEqual(['a bad b', 'a', 'bad', 'b']);
  expect(await ask('bad')).toEqual(['it took the worker down']);
});

test('one that may take long goes alone', async () => {
  const { batches, ask, messages } = create();
  const others = ask('a', 'b');
  expect(await batches.askAlone('large')).toBe('LARGE');
  await others;
  expect(messages).toEqual(['large', 'a b']);
});
