import { transformSync } from 'esbuild';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findMapUrl, pathOfMap, readDataUrl, ScriptMap } from './script-map.ts';

const SOURCE = `interface Point { x: number }

export function distance(a: Point, b: Point): number {
  return Math.abs(a.x - b.x);
}

export const twice = (value: number): number => {
  return value * 2;
};
`;

/** Line and column of a text, from 1. */
function placeOf(text: string, part: string): { line: number; column: number } {
  const before = text.slice(0, text.indexOf(part)).split('\n');
  return { line: before.length, column: before.at(-1)!.length + 1 };
}

describe('the comment that leads to a map', () => {
  it('is the last one', () => {
    const text = 'a\n//# sourceMappingURL=a.map\nb();\n//# sourceMappingURL=b.js.map\n';
    expect(findMapUrl(text)).toBe('b.js.map');
    expect(findMapUrl('a;\r\n/*# sourceMappingURL=c.map */')).toBe('c.map');
    expect(findMapUrl('a; const url = "sourceMappingURL=x"')).toBeUndefined();
    expect(findMapUrl('')).toBeUndefined();
  });

  it('may hold the map', () => {
    const text = '{"version":3}';
    const base64 = Buffer.from(text).toString('base64');
    expect(readDataUrl(`data:application/json;charset=utf-8;base64,${base64}`)).toBe(text);
    expect(readDataUrl(`data:application/json,${encodeURIComponent(text)}`)).toBe(text);
    expect(readDataUrl('app.js.map')).toBeUndefined();
  });

  it('leads to files, never to the net', () => {
    expect(pathOfMap('a.js.map', '/app/dist/a.js')).toBe('/app/dist/a.js.map');
    expect(pathOfMap('../maps/a%20b.map?v=1', '/app/dist/a.js')).toBe('/app/maps/a b.map');
    expect(pathOfMap('file:///maps/a.map', '/app/a.js')).toBe('/maps/a.map');
    expect(pathOfMap('https://example.com/a.map', '/app/a.js')).toBeUndefined();
    expect(pathOfMap('%', '/app/a.js')).toBeUndefined();
  });
});

describe('a source map', () => {
  it('gives the written names and lines of minified code', () => {
    const { code, map } = transformSync(SOURCE, {
      loader: 'ts',
      minify: true,
      sourcemap: true,
      sourcefile: '../src/point.ts',
      format: 'cjs',
    });
    const minified = /function (\w+)\(/.exec(code)!;
    const start = placeOf(code, minified[0]);
    const startColumn = start.column + minified[0].length - 1;
    const subject = new ScriptMap(code, map, '/app/dist/point.js.map');
    const place = subject.originalOf({
      name: minified[1]!,
      ...placeOf(code, 'Math.abs'),
      startLine: start.line,
      startColumn,
    });
    expect(place).toEqual({
      name: 'distance',
      file: '/app/src/point.ts',
      line: 4,
      column: expect.any(Number),
      startLine: 3,
    });
  });

  it.each(['#area', 'get #size', 'set #size'])('gives the written name of the private %s', (written) => {
    const source =
      'class Shape { #area() { a() } get #size() { b() } set #size(v) { c(v) } f = () => this.#size + this.#area() }';
    const { code, map } = transformSync(source, { minify: true, sourcemap: true, sourcefile: 'shape.js' });
    const [, prefix = '', private_ = ''] = /^(get |set )?(.+)$/.exec(written)!;
    const minified = new RegExp(`${prefix.trim() || '[;{}]'}(#[^#(]+)\\(`).exec(code)!;
    const start = placeOf(code, minified[0]);
    const startColumn = start.column + minified[0].length - 1;
    const subject = new ScriptMap(code, map, '/app/shape.js.map');
    const place = { line: start.line, column: startColumn, startLine: start.line, startColumn };
    expect(minified[1]).not.toBe(private_);
    expect(subject.originalOf({ name: prefix + minified[1], ...place })?.name).toBe(written);
  });

  it('leaves names that the map does not change', () => {
    const { code, map } = transformSync(SOURCE, { loader: 'ts', sourcemap: true, sourcefile: 'point.ts' });
    const subject = new ScriptMap(code, map, '/app/point.js.map');
    const start = placeOf(code, '(value)');
    const place = subject.originalOf({
      name: 'twice',
      ...placeOf(code, 'value * 2'),
      startLine: start.line,
      startColumn: start.column,
    });
    expect(place).toMatchObject({ name: 'twice', file: '/app/point.ts', line: 8, startLine: 7 });
  });

  it('is read by sections as well', () => {
    const { code, map } = transformSync(SOURCE, { loader: 'ts', sourcemap: true, sourcefile: 'point.ts' });
    const sections = { version: 3, sections: [{ offset: { line: 2, column: 0 }, map: JSON.parse(map) }] };
    const subject = new ScriptMap(`\n\n${code}`, JSON.stringify(sections), '/app/point.js.map');
    const place = placeOf(`\n\n${code}`, 'value * 2');
    expect(subject.originalOf({ name: 'x', ...place, startLine: 0, startColumn: 0 })).toMatchObject({
      file: '/app/point.ts',
      line: 8,
    });
  });

  it('says nothing of places outside of it', () => {
    const subject = new ScriptMap(
      '',
      '{"version":3,"sources":["a.ts"],"names":[],"mappings":"AAAA"}',
      '/a.map',
    );
    const start = { startLine: 0, startColumn: 0 };
    expect(subject.originalOf({ name: 'a', line: 9, column: 1, ...start })).toBeUndefined();
    expect(subject.originalOf({ name: 'a', line: 0, column: 0, ...start })).toBeUndefined();
  });

  it('throws an error where it is none, and nothing else', () => {
    const json = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .record({
          version: fc.constant(3),
          sources: fc.array(fc.oneof(fc.string(), fc.constant(null), fc.integer())),
          names: fc.array(fc.string()),
          mappings: fc.string(),
        })
        .map((map) => JSON.stringify(map)),
    );
    fc.assert(
      fc.property(json, fc.nat({ max: 9 }), fc.nat({ max: 99 }), (text, line, column) => {
        try {
          const map = new ScriptMap('function a(b) {}', text, '/a.map');
          map.originalOf({ name: 'a', line, column, startLine: 1, startColumn: 11 });
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
        }
      }),
    );
  });
});
