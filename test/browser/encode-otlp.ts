import Long from 'long';
import { opentelemetry } from '#otlp';
import { readAttributes } from '../../common/profile/model/attributes.ts';
import type { Location, Process, Profile, Sample } from '../../common/profile/model/profile.ts';

const { ExportProfilesServiceRequest } = opentelemetry.proto.collector.profiles.v1development;

/**
 * The profile as an OTLP request, one resource a process, written independently of the product's encoder.
 * `damage` changes the message before it is encoded.
 */
export function encodeOtlp(profile: Profile, damage: (request: OtlpRequest) => void = () => {}): Buffer {
  const request = otlpRequest(profile);
  damage(request);
  return Buffer.from(ExportProfilesServiceRequest.encode(request).finish());
}

export type OtlpRequest = ReturnType<typeof otlpRequest>;

export function otlpRequest(profile: Profile) {
  const tables = new Tables();
  const type = ({ type: name, unit }: { type: string; unit: string }) => ({
    typeStrindex: tables.string(name),
    unitStrindex: tables.string(unit),
  });
  const functionTable = profile.functions.map((func) => ({
    nameStrindex: tables.string(func.name),
    systemNameStrindex: tables.string(func.systemName),
    filenameStrindex: tables.string(func.filename),
    startLine: Long.fromNumber(func.startLine),
  }));
  const locationTable = profile.locations.map((location) => tables.location(location));
  const mappingTable = profile.mappings.map((mapping) => ({
    filenameStrindex: tables.string(mapping.filename),
    attributeIndices: (
      [
        ['process.executable.build_id.htlhash', mapping.fileId],
        ['process.executable.build_id.gnu', mapping.gnuBuildId],
      ] as const
    )
      .filter(([, id]) => id !== '')
      .map(([key, id]) => tables.attribute(key, id)),
  }));
  const resourceProfiles = profile.processes.flatMap((process, index) => {
    const samples = profile.samples.filter((sample) => sample.process === index);
    if (samples.length === 0) return [];
    return {
      resource: { attributes: resourceAttributes(profile, process) },
      scopeProfiles: [
        {
          profiles: [
            {
              sampleType: type(profile.type.sampleType),
              periodType: type(profile.type.periodType),
              period: fixed64(profile.type.period),
              timeUnixNano: fixed64(profile.timeUnixNano),
              durationNano: fixed64(profile.durationNano),
              samples: samples.map((sample) => tables.sample(sample, process)),
            },
          ],
        },
      ],
    };
  });
  const stackTable = profile.stacks.map((stack) => ({ locationIndices: [...stack] }));
  const { stringTable, attributeTable } = tables;
  const dictionary = {
    ...{
      mappingTable,
      locationTable,
      functionTable,
      linkTable: profile.links.map(({ traceId, spanId }) => ({
        traceId: Buffer.from(traceId, 'hex'),
        spanId: Buffer.from(spanId, 'hex'),
      })),
      stringTable,
      attributeTable,
      stackTable,
    },
  };
  return { resourceProfiles, dictionary };
}

function resourceAttributes(profile: Profile, process: Process) {
  const attributes: Record<string, string> = {
    ...profile.host,
    'process.executable.name': process.executableName,
    'process.executable.path': process.executablePath,
    ...Object.fromEntries(readAttributes(process.attributes ?? '')),
  };
  return Object.entries(attributes).map(([key, value]) => ({ key, value: { stringValue: value } }));
}

class Tables {
  readonly stringTable: string[] = [''];
  readonly attributeTable: { keyStrindex: number; value?: { stringValue: string } | { intValue: Long } }[] = [
    { keyStrindex: 0 },
  ];
  readonly #known = new Map<string, number>();

  string(text: string): number {
    const known = this.stringTable.indexOf(text);
    return known >= 0 ? known : this.stringTable.push(text) - 1;
  }

  attribute(key: string, value: string | number): number {
    const id = `${key}=${value}`;
    let index = this.#known.get(id);
    if (index === undefined) {
      const any = typeof value === 'string' ? { stringValue: value } : { intValue: Long.fromNumber(value) };
      index = this.attributeTable.push({ keyStrindex: this.string(key), value: any }) - 1;
      this.#known.set(id, index);
    }
    return index;
  }

  location({ mapping, address, frameType, lines, functionStart }: Location) {
    const attributes = frameType === '' ? [] : [this.attribute('profile.frame.type', frameType)];
    if (functionStart) attributes.push(this.attribute('everyframe.function.start', functionStart));
    return {
      mappingIndex: mapping,
      address: fixed64(address),
      lines: lines.map(({ func, line }) => ({ functionIndex: func, line: Long.fromNumber(line) })),
      attributeIndices: attributes,
    };
  }

  sample(sample: Sample, process: Process) {
    return {
      stackIndex: sample.stack,
      linkIndex: sample.link ?? 0,
      attributeIndices: [
        this.attribute('process.pid', process.pid),
        this.attribute('thread.id', sample.tid),
        this.attribute('thread.name', sample.threadName),
        this.attribute('cpu.logical_number', sample.cpu),
      ],
      timestampsUnixNano: sample.timestamps.map(fixed64),
    };
  }
}

/** protobufjs takes no bigint. */
const fixed64 = (value: bigint): Long => Long.fromString(value.toString(), true);
