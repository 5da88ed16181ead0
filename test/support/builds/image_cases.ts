// A service that runs applications from images of its own registry.
import {
  configuredApplication,
  startDeployService,
  type DeployService,
  type TestApplication,
} from '../deployments/deploy';
import { freePort } from '../processes/free_port';
import { busyboxLayer } from './images';
import { needs } from '../runner/programs';
import { startRegistryClient, type RegistryClient } from '../registries/registry_client';

export type ImageApplication = Omit<TestApplication, 'push'>;

export let service: DeployService;
export let registry: RegistryClient;
export let registryPort: number;
/** The layer that all images begin with. */
export let base: Buffer;

/** For images that are made of busybox and run on this host. */
export function describeImages(name: string, work: () => void): void {
  needs('busybox', 'bwrap').describe(name, work);
}

/** To be called where tests are declared. */
export function setUpImages(given: Record<string, string> | ((port: number) => Record<string, string>) = {}): void {
  beforeAll(async () => {
    registryPort = await freePort();
    const settings = typeof given === 'function' ? given(registryPort) : given;
    service = await startDeployService({ REGISTRY_PORT: String(registryPort), ...settings });
    const made = await service.call('POST', '/v2/registries', {
      body: { name: 'acme' },
      headers: { Prefer: 'wait=20' },
    });
    expect([made.status, made.body.status]).toEqual([201, 'active']);
    registry = startRegistryClient({ port: registryPort, username: 'owner', password: service.key });
    base = await busyboxLayer();
  });
  afterAll(() => service?.close());
}

/** The name of an image as applications have it. */
export function imageName(rest: string): string {
  return `localhost:${registryPort}/acme/${rest}`;
}

let count = 0;

export async function imageApplication(image: string, settings: object = {}): Promise<ImageApplication> {
  const name = `img-${(count += 1)}`;
  const made = await service.call('POST', '/v2/applications', { body: { name, source: { type: 'image', image } } });
  if (made.status !== 201) throw new Error(made.text);
  return configuredApplication(service, made.body, settings);
}
