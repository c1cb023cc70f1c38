import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { opentelemetry } from '#otlp';

const { ExportProfilesServiceResponse } = opentelemetry.proto.collector.profiles.v1development;
const PATH = '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export';

export interface PushAnswer {
  rejectedProfiles: number;
  errorMessage: string;
}

/** Sends requests to a collector as an agent does: gRPC, gzip. */
export class Pusher {
  readonly #client: Client;

  readonly #headers: Record<string, string>;

  constructor(address: string, headers: Record<string, string> = {}, ca?: Buffer) {
    this.#headers = headers;
    const channel = ca === undefined ? credentials.createInsecure() : credentials.createSsl(ca);
    this.#client = new Client(address, channel, {
      'grpc.default_compression_algorithm': 2,
      'grpc.max_send_message_length': -1,
    });
  }

  /** Rejects with grpc-js's ServiceError. */
  push(request: Buffer): Promise<PushAnswer> {
    return new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, answer?: PushAnswer): void =>
        error === null ? resolve(answer!) : reject(error);
      const same = (bytes: Buffer): Buffer => bytes;
      this.#client.makeUnaryRequest(
        PATH,
        same,
        readAnswer,
        request,
        metadataOf(this.#headers),
        { deadline: Date.now() + 10_000 },
        done,
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}

function metadataOf(headers: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

function readAnswer(bytes: Buffer): PushAnswer {
  const { partialSuccess } = ExportProfilesServiceResponse.decode(bytes);
  return {
    rejectedProfiles: Number(partialSuccess?.rejectedProfiles ?? 0),
    errorMessage: partialSuccess?.errorMessage ?? '',
  };
}
