/** The settings of one event as its program has them: struct ef_event. */
import type { EventField } from '../events/event-field.ts';
import type { Comparison } from '../events/event-spec.ts';
import { CONFIG, EventComparison, EventFieldKind } from '../records/records.gen.ts';

export interface EventFields {
  /** The event's value; 1 without it. */
  value?: EventField;
  /** Which events are counted at all. */
  filter?: EventField;
  comparison?: Comparison;
  operand?: bigint;
  /** Of allocations: bytes of which one stack is taken. */
  scale?: number;
}

const COMPARISONS: Readonly<Record<Comparison, number>> = {
  '==': EventComparison.EQUAL,
  '!=': EventComparison.NOT_EQUAL,
  '<': EventComparison.LESS,
  '>': EventComparison.GREATER,
};

/** Writes itself into the bytes of a struct ef_config. */
export type EventSettings = (config: Buffer) => void;

export function encodeEvent(
  number: number,
  budget: number,
  { value, filter, comparison, operand = 0n, scale = 0 }: EventFields,
): EventSettings {
  return (config) => {
    config.writeUInt32LE(number, CONFIG.eventNumber);
    config.writeUInt32LE(budget, CONFIG.eventBudget);
    if (value) encodeField(config, CONFIG.eventValueKind, value);
    if (filter) encodeField(config, CONFIG.eventFilterKind, filter);
    config.writeBigInt64LE(BigInt.asIntN(64, operand), CONFIG.eventOperand);
    config.writeBigUInt64LE(BigInt(scale), CONFIG.eventScale);
    config.writeUInt32LE(comparison ? COMPARISONS[comparison] : EventComparison.ANY, CONFIG.eventComparison);
  };
}

/** `at` is where a struct ef_event_field begins. */
function encodeField(config: Buffer, at: number, field: EventField): void {
  const from = at - CONFIG.eventValueKind;
  const { kind, argument, offset, index = 0, scale = 0 } = partsOf(field);
  config.writeUInt32LE(kind, from + CONFIG.eventValueKind);
  config.writeUInt32LE(argument, from + CONFIG.eventValueArgument);
  config.writeBigInt64LE(BigInt(offset), from + CONFIG.eventValueOffset);
  config.writeUInt32LE(field.bytes, from + CONFIG.eventValueSize);
  config.writeUInt32LE(field.isSigned ? 1 : 0, from + CONFIG.eventValueIsSigned);
  config.writeUInt32LE(index, from + CONFIG.eventValueIndex);
  config.writeUInt32LE(scale, from + CONFIG.eventValueScale);
}

interface FieldParts {
  kind: number;
  argument: number;
  offset: number;
  index?: number;
  scale?: number;
}

function partsOf(field: EventField): FieldParts {
  switch (field.kind) {
    case 'argument':
      return { kind: EventFieldKind.ARGUMENT, argument: field.argument, offset: 0 };
    case 'member':
      return { kind: EventFieldKind.MEMBER, argument: field.argument, offset: field.offset };
    case 'register':
      return { kind: EventFieldKind.REGISTER, argument: field.register, offset: field.lowestBit };
    case 'memory':
      return { ...field, kind: EventFieldKind.MEMORY, argument: field.base };
    case 'constant':
      return { kind: EventFieldKind.CONSTANT, argument: 0, offset: field.value };
  }
}
