/** The settings of one event as its program has them: struct ef_event. */
import type { TracepointField } from '../base/native.ts';
import type { Comparison } from '../events/event-spec.ts';
import { CONFIG, EventComparison, EventFieldKind } from '../records/records.gen.ts';

export interface EventFields {
  /** The event's value; 1 without it. */
  value?: TracepointField;
  /** Which events are counted at all. */
  filter?: TracepointField;
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
function encodeField(config: Buffer, at: number, field: TracepointField): void {
  const { argument, offset, bytes, isSigned } = field;
  const from = at - CONFIG.eventValueKind;
  config.writeUInt32LE(
    offset < 0 ? EventFieldKind.ARGUMENT : EventFieldKind.MEMBER,
    from + CONFIG.eventValueKind,
  );
  config.writeUInt32LE(argument, from + CONFIG.eventValueArgument);
  config.writeUInt32LE(Math.max(0, offset), from + CONFIG.eventValueOffset);
  config.writeUInt32LE(bytes, from + CONFIG.eventValueSize);
  config.writeUInt32LE(isSigned ? 1 : 0, from + CONFIG.eventValueIsSigned);
}
