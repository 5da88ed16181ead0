// `http.port`: a program that knows nothing of PORT answers at it, where instances have networks of their own.
import { eventually, GIVEN_UP_SOON, startDeployService, type DeployService } from './support/deploy';
import { needs } from './support/programs';

/** What the starters of frameworks are: their port stands in the program. */
const program = (text: string): string =>
  `require('node:http').createServer((_, response) => response.end('${text} ' + process.env.PORT)).listen(3000)`;
const files = (text: string): Record<string, string> => ({ 'server.js': program(text) });
const WITHIN_MS = 120_000;

const { describe: isolated } = needs('bwrap', 'ip', 'nft');

(process.getuid?.() === 0 ? isolated : describe.skip)('as root, on networks of projects', () => {
  let service: DeployService;
  beforeAll(async () => {
    service = await startDeployService({ NETWORK: 'isolated', NETWORK_BLOCK: '10.249.0.0/24' });
  });
  afterAll(() => service?.close());

  test(
    'the reason of a failure names the setting; with it, instances and the next release share the port',
    async () => {
      const application = await service.application(files('one'), GIVEN_UP_SOON);
      const failed = await application.deploy();
      expect([failed.status, failed.status_reason]).toEqual([
        'failed',
        expect.stringMatching(/it listens on 3000\. Use the PORT variable, or set `http\.port` to 3000\./),
      ]);
      const settings = `/v2/applications/${application.id}/settings`;
      const { status, body } = await service.call('PATCH', settings, { body: { http: { port: 3000 } } });
      expect([status, body.http.port]).toEqual([200, 3000]);
      const first = await application.deploy();
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      expect(await application.visit()).toEqual({ status: 200, body: 'one 3000' });
      const [web] = (await application.get('/processes')).data;
      await application.post(`/processes/${web.id}/scale`, { instances: 2 });
      application.push(files('two'));
      const second = await application.deploy();
      expect([second.status, second.status_reason]).toEqual(['active', null]);
      await eventually('the new release', async () => (await application.visit()).body === 'two 3000', 60_000);
    },
    WITHIN_MS,
  );
});

describe('on the network of the host', () => {
  let service: DeployService;
  beforeAll(async () => {
    service = await startDeployService({ NETWORK: 'shared' });
  });
  afterAll(() => service?.close());

  test('another port than the one that is read is refused', async () => {
    const application = await service.application(files('one'));
    const settings = `/v2/applications/${application.id}/settings`;
    const { body: present } = await service.call('GET', settings);
    const patch = (port: number) => service.call('PATCH', settings, { body: { http: { ...present.http, port } } });
    expect(await patch(3000)).toMatchObject({
      status: 422,
      body: { code: 'validation_failed', errors: [{ field: 'http.port', code: 'depends_on' }] },
    });
    expect((await patch(present.http.port)).status).toBe(200);
  });
});
