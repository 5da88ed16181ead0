// A service with a container registry.
import { freePort } from '../processes/free_port';
import { startRegistryClient, type RegistryClient } from './registry_client';
import { startService, type Answer, type TestService } from '../service';

export type Body = Answer['body'];

export let service: TestService;
export let port: number;

/** To be called where tests are declared. */
export function setUpRegistry(more: Record<string, string> = {}): void {
  beforeAll(async () => {
    port = await freePort();
    const settings = { REGISTRY_PORT: String(port), QUOTAS: '{"registries": 100}', ...more };
    service = await startService({ worker: true, settings });
  });
  afterAll(() => service.close());
}

let serial = 0;

export function newName(): string {
  return `reg${(serial += 1)}`;
}

export async function activeRegistry(name = newName()): Promise<Body> {
  const made = await service.call('POST', '/v2/registries', { body: { name }, headers: { Prefer: 'wait=20' } });
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  return made.body;
}

export async function createRobot(permissions: string[], more: object = {}): Promise<Body> {
  const made = await service.call('POST', '/v2/robot_accounts', { body: { name: newName(), permissions, ...more } });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  return made.body;
}

export function clientOf({ username, secret }: Body): RegistryClient {
  return startRegistryClient({ port, username: String(username), password: String(secret) });
}

export async function createPusher(): Promise<RegistryClient> {
  return clientOf(await createRobot(['pull', 'push', 'delete']));
}
