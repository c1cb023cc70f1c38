import { describe, expect, test } from 'vitest';
import { BadEvent, parseEvent } from './event-spec.ts';

test.each([
  ['page-faults', { kind: 'perf', text: 'page-faults', type: 1, config: 2, isHardware: false }],
  ['cs', { kind: 'perf', text: 'context-switches', config: 3 }],
  ['cycles', { kind: 'perf', type: 0, config: 0, isHardware: true }],
  ['cpu-clock', { kind: 'cpu-clock' }],
  ['lock', { kind: 'lock' }],
  ['mmap', { kind: 'mmap' }],
  ['uprobe:libc:malloc', { kind: 'uprobe', path: 'libc', symbol: 'malloc', offset: 0 }],
  ['uprobe:/a/b:main.(*Shop).run+0x10', { path: '/a/b', symbol: 'main.(*Shop).run', offset: 16 }],
  [
    'uprobe:./app:ns::Shop::sell(int, std::map<int, int>)',
    { symbol: 'ns::Shop::sell(int, std::map<int, int>)' },
  ],
  [
    'uprobe:app:f(int, int),value=arg1,unit=bytes,if=arg0:i32>-1',
    {
      ...{ symbol: 'f(int, int)', value: 'arg1', unit: 'bytes' },
      filter: { field: 'arg0:i32', comparison: '>', operand: -1n },
    },
  ],
  ['uprobe:app:operator+', { symbol: 'operator+', offset: 0 }],
  ['usdt:/usr/bin/python3:python:gc__start', { kind: 'usdt', provider: 'python', name: 'gc__start' }],
  [
    'usdt:python3:python:gc__done,value=arg0,unit=objects,if=arg0:u32!=0',
    {
      ...{ name: 'gc__done', value: 'arg0', unit: 'objects' },
      filter: { field: 'arg0:u32', comparison: '!=', operand: 0n },
    },
  ],
  [
    'tracepoint:sched:sched_process_fork',
    { kind: 'tracepoint', category: 'sched', value: undefined, filter: undefined },
  ],
  [
    'tracepoint:kmem:kmalloc,value=bytes_alloc,if=bytes_req>-1',
    { name: 'kmalloc', value: 'bytes_alloc', filter: { field: 'bytes_req', comparison: '>', operand: -1n } },
  ],
  ['uretprobe:libc:getaddrinfo', { kind: 'uretprobe', path: 'libc', symbol: 'getaddrinfo' }],
  ['malloc', { kind: 'malloc', path: undefined, everyBytes: 524_288 }],
  ['malloc:/usr/bin/redis-server,every=64KiB', { path: '/usr/bin/redis-server', everyBytes: 65_536 }],
])('%s', (text, spec) => {
  expect(parseEvent(text)).toMatchObject(spec);
});

describe('what is not an event is told, with what to write', () => {
  test.each([
    ['page-fault', /no event "page-fault": give one of cpu-clock, page-faults/],
    ['toString', /no event/],
    ['', /no event/],
    ['uprobe:libc', /uprobe:PATH:SYMBOL/],
    ['usdt:a:b', /usdt:PATH:PROVIDER:NAME/],
    ['tracepoint:sched', /tracepoint:CATEGORY:NAME/],
    ['tracepoint:kmem:kmalloc,value=', /value=FIELD/],
    ['uprobe:a:b+9999999999', /uprobe:PATH/],
    ['uretprobe:libc', /uretprobe:PATH:SYMBOL/],
    ['uprobe:libc:read,if=arg0==0x10000000000000000', /64 bits/],
    ['uprobe:libc:read,if=arg0>-9223372036854775809', /64 bits/],
    ['uprobe:libc:read,value=arg', /value=arg0/],
    ['usdt:a:b:c,value=x', /value=arg0/],
    ['malloc:', /malloc:PATH/],
    ['malloc,every=0', /every=BYTES/],
    ['malloc,every=2048GiB', /every=BYTES/],
    ['mallocs', /no event "mallocs"/],
  ])('%s', (text, message) => {
    expect(() => parseEvent(text)).toThrow(BadEvent);
    expect(() => parseEvent(text)).toThrow(message);
  });
});
