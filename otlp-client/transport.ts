import { Exporter, type Transport } from './exporter.ts';
import type { ConnectionOptions } from './grpc-client.ts';
import { HttpExporter } from './http-exporter.ts';

/** gRPC, or HTTP where the options say so. */
export const makeTransport = (options: ConnectionOptions): Transport =>
  options.http ? new HttpExporter({ ...options, http: options.http }) : new Exporter(options);
