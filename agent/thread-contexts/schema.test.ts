import { describe, expect, it } from 'vitest';
import { schemaOf } from './schema.ts';

const VERSION = 'threadlocal.schema_version';
const KEYS = 'threadlocal.attribute_key_map';

describe('what a process says of its threads', () => {
  it.each(['tlsdesc_v1_dev', 'tlsdesc_v1', 'tls_v1'])(
    '%s: a variable with the address of a record',
    (version) => {
      expect(
        schemaOf(
          new Map<string, string | string[]>([
            [VERSION, version],
            [KEYS, ['a', 'b']],
          ]),
        ),
      ).toEqual({
        ...{ variable: 'otel_thread_ctx_v1', size: 8, keys: ['a', 'b'], node: undefined },
      });
    },
  );

  it('may be of Node, whose objects are as V8 usually has them', () => {
    const schema = schemaOf(new Map([[VERSION, 'nodejs_v1_dev']]));
    expect(schema).toMatchObject({ variable: 'otel_thread_ctx_nodejs_v1', size: 32, keys: [] });
    expect(schema?.node).toEqual({ table: 24, counts: 16, wrapped: 24, wrappedElse: 32, record: undefined });
  });

  it('or as it says', () => {
    const told = new Map([
      [VERSION, 'nodejs_v1'],
      ['threadlocal.js_object_record_offset', '40'],
      ['threadlocal.js_map_table_offset', '48'],
      ['threadlocal.ordered_hash_map_header_size', '8'],
      ['threadlocal.tagged_size', '8'],
    ]);
    expect(schemaOf(told)?.node).toEqual({
      table: 48,
      counts: 8,
      wrapped: 40,
      wrappedElse: undefined,
      record: undefined,
    });
    const older = new Map([
      [VERSION, 'nodejs_v1'],
      ['threadlocal.wrapped_object_offset', '24'],
      ['threadlocal.native_wrap_fields_offset', '16'],
    ]);
    expect(schemaOf(older)?.node).toMatchObject({ wrapped: 24, wrappedElse: undefined, record: 16 });
  });

  it.each([
    ['nothing', []],
    ['another version', [[VERSION, 'tls_v9']]],
    ["Go's, whose labels are read without it", [[VERSION, 'go_pprof_labels_v1']]],
    [
      'compressed pointers',
      [
        [VERSION, 'nodejs_v1'],
        ['threadlocal.tagged_size', '4'],
      ],
    ],
    [
      'an offset far away',
      [
        [VERSION, 'nodejs_v1'],
        ['threadlocal.js_map_table_offset', '4096'],
      ],
    ],
    [
      'no offset',
      [
        [VERSION, 'nodejs_v1'],
        ['threadlocal.js_map_table_offset', 'x'],
      ],
    ],
    [
      'an offset below',
      [
        [VERSION, 'nodejs_v1'],
        ['threadlocal.js_object_record_offset', '-8'],
      ],
    ],
  ] as [string, [string, string][]][])('is not used with %s', (_, attributes) => {
    expect(schemaOf(new Map(attributes))).toBeUndefined();
  });
});
