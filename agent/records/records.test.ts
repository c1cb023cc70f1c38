import { expect, test } from 'vitest';
import { FUNCTION } from './records.gen.ts';
import { readFunctionRecord } from './records.ts';

function record(...[className, name, file]: [string, string, string]): Buffer {
  const texts = [className, name, file].map((text) => (text ? `${text}\0` : ''));
  const buffer = Buffer.alloc(FUNCTION.texts + Buffer.byteLength(texts.join('')));
  buffer.writeUInt16LE(Buffer.byteLength(texts[0]!), FUNCTION.classBytes);
  buffer.writeUInt16LE(Buffer.byteLength(texts[1]!), FUNCTION.nameBytes);
  buffer.writeUInt16LE(Buffer.byteLength(texts[2]!), FUNCTION.fileBytes);
  buffer.writeUInt32LE(7, FUNCTION.firstLine);
  buffer.write(texts.join(''), FUNCTION.texts);
  return buffer;
}

test('texts of a function stand behind one another', () => {
  const buffer = record('App\\Käse', 'run', '/app/a.php');
  expect(readFunctionRecord(buffer, 0, buffer.length)).toMatchObject({
    className: 'App\\Käse',
    name: 'run',
    file: '/app/a.php',
    firstLine: 7,
  });
  const main = record('', '', '/app/a.php');
  expect(readFunctionRecord(main, 0, main.length)).toMatchObject({
    className: '',
    name: '',
    file: '/app/a.php',
  });
});

test('lengths that lead out of the record give what is in it', () => {
  const buffer = record('A', 'run', '/app/a.php');
  buffer.writeUInt16LE(65_535, FUNCTION.nameBytes);
  const next = Buffer.concat([buffer, Buffer.from('secret')]);
  expect(readFunctionRecord(next, 0, buffer.length)).toMatchObject({ className: 'A', name: 'run', file: '' });
});
