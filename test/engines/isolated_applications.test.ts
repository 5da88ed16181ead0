// Applications whose project has a network of its own: built, released, served, and attacked by another project.
import { spawnSync } from 'node:child_process';
import { eventually, startDeployService, type DeployService } from '../support/deploy';
import { nodeLocked } from '../support/repositories';

const asRoot = process.getuid?.() === 0 ? describe : describe.skip;
let service: DeployService;

asRoot('applications in networks of projects', () => {
  beforeAll(async () => {
    service = await startDeployService({ NETWORK: 'isolated', NETWORK_BLOCK: '10.245.0.0/24' });
  }, 60_000);
  afterAll(() => service?.close(), 60_000);

  test('an application is built and served, and is not at a port of the host', async () => {
    const application = await service.application(nodeLocked('v1'));
    const deployment = await application.deploy();
    if (deployment.status !== 'active') throw new Error((await application.log(deployment.id)).join('\n'));
    expect(await application.visit()).toEqual({ status: 200, body: 'v1' });
    const [instance] = await service.sql<{ port: number }>('select port from instances');
    const listeners = spawnSync('ss', ['-Hltn', `sport = :${instance?.port}`], { encoding: 'utf8' }).stdout;
    expect(listeners).toBe('');
    await service.clear();
    await eventually('the end of the network', () => Promise.resolve(namespacesWith('10.245.0.') === 0));
  });
});

function namespacesWith(address: string): number {
  const { stdout } = spawnSync('ip', ['-o', 'addr'], { encoding: 'utf8' });
  return stdout.split('\n').filter((line) => line.includes(address)).length;
}
