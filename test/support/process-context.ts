/** The payload of a process context (OTEP 4719), as programs publish it. */
import { ProtoWriter } from '../../common/protobuf/proto-writer.ts';

type Attributes = Readonly<Record<string, string | readonly string[] | number>>;

/** As hex. */
export function processContext(resource: Attributes, attributes: Attributes = {}): string {
  const [context, ofResource] = [new ProtoWriter(256), new ProtoWriter(256)];
  for (const pair of pairsOf(resource)) ofResource.message(1, pair);
  context.message(1, ofResource);
  for (const pair of pairsOf(attributes)) context.message(2, pair);
  return Buffer.from(context.finish()).toString('hex');
}

const pairsOf = (attributes: Attributes): ProtoWriter[] =>
  Object.entries(attributes).map(([key, value]) => {
    const pair = new ProtoWriter(64);
    pair.string(1, key);
    pair.message(2, anyOf(value));
    return pair;
  });

function anyOf(value: Attributes[string]): ProtoWriter {
  const any = new ProtoWriter(64);
  if (typeof value === 'string') any.string(1, value);
  else if (typeof value === 'number') any.uint(3, value);
  else {
    const list = new ProtoWriter(64);
    for (const item of value) list.message(1, anyOf(item));
    any.message(5, list);
  }
  return any;
}
