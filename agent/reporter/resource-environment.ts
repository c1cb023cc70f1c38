/**
 * OTEL_RESOURCE_ATTRIBUTES of the agent itself: what is the same for all that it sends from this machine, such as the
 * environment or the cluster. What names a service or a process is the sampled process's own.
 */

type Environment = Record<string, string | undefined>;

export interface ResourceEnvironment {
  attributes: Record<string, string>;
  notes: string[];
}

const MAX_ATTRIBUTES = 64;
const OF_PROCESSES = /^(?:service|process|container|thread|telemetry)\./;

/** `name=value,name=value`, percent-encoded; any mistake discards the variable (opentelemetry-specification, resource/sdk.md). */
export function resourceFromEnvironment(env: Environment): ResourceEnvironment {
  const text = env['OTEL_RESOURCE_ATTRIBUTES'] ?? '';
  const notes: string[] = [];
  let attributes: Record<string, string> = {};
  try {
    attributes = parseAttributes(text);
  } catch (error) {
    notes.push(`OTEL_RESOURCE_ATTRIBUTES has no effect: ${(error as Error).message}`);
  }
  const foreign = Object.keys(attributes).filter((name) => OF_PROCESSES.test(name));
  for (const name of foreign) delete attributes[name];
  if (env['OTEL_SERVICE_NAME']) foreign.push('OTEL_SERVICE_NAME');
  if (foreign.length > 0)
    notes.push(
      `${foreign.join(', ')} of the agent's environment: profiles have the names of what was sampled`,
    );
  return { attributes, notes };
}

function parseAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  const pairs = text.split(',').filter((pair) => pair.trim() !== '');
  if (pairs.length > MAX_ATTRIBUTES) throw new Error(`it has more than ${MAX_ATTRIBUTES} attributes`);
  for (const pair of pairs) {
    const equals = pair.indexOf('=');
    if (equals < 1) throw new Error(`"${pair.trim()}" is not name=value`);
    attributes[decode(pair.slice(0, equals))] = decode(pair.slice(equals + 1));
  }
  return attributes;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    throw new Error(`"${text.trim()}" has a "%" that two hexadecimal digits do not follow`);
  }
}
