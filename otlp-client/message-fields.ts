import protobuf from 'protobufjs/minimal.js';

const LENGTH_DELIMITED = 2;
const VARINT = 0;

type Field = Uint8Array | number;

/** Calls `visit` for each varint or length-delimited field of a protobuf message; throws where the bytes are none. */
export function eachField(bytes: Uint8Array, visit: (id: number, value: Field) => void): void {
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const wireType = tag & 7;
    if (wireType === LENGTH_DELIMITED) visit(tag >>> 3, reader.bytes());
    else if (wireType === VARINT) visit(tag >>> 3, Number(reader.int64()));
    else reader.skipType(wireType);
  }
}
