import { expect, it } from 'vitest';
import { resourceFromEnvironment } from './resource-environment.ts';

it('reads what all of a machine has in common, percent-encoded', () => {
  const OTEL_RESOURCE_ATTRIBUTES = 'deployment.environment.name=prod, k8s.node.name=n%3D1%2Cb';
  expect(resourceFromEnvironment({ OTEL_RESOURCE_ATTRIBUTES })).toEqual({
    attributes: { 'deployment.environment.name': 'prod', 'k8s.node.name': 'n=1,b' },
    notes: [],
  });
});

it('leaves services their own names, and says so', () => {
  const env = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=agent,a=1', OTEL_SERVICE_NAME: 'x' };
  const { attributes, notes } = resourceFromEnvironment(env);
  expect(attributes).toEqual({ a: '1' });
  expect(notes[0]).toMatch(/^service\.name, OTEL_SERVICE_NAME/);
});

it.each(['a', '=b', 'a=1,b=%zz'])('has none of %j, and says why', (OTEL_RESOURCE_ATTRIBUTES) => {
  const { attributes, notes } = resourceFromEnvironment({ OTEL_RESOURCE_ATTRIBUTES });
  expect(attributes).toEqual({});
  expect(notes).toHaveLength(1);
});
