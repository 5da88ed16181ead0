// Variables that the platform sets by itself are the owner's to change, and to take away: some programs refuse to start
// while a variable is there at all.
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import { describeEngine, openDatabaseWorkshop, type DatabaseWorkshop } from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

const FILES = {
  'package.json': JSON.stringify({ name: 'shown', version: '1.0.0', scripts: { build: 'node build.js' } }),
  'build.js': `require('fs').writeFileSync('built.json', JSON.stringify(process.env));`,
  'server.js': `const built = require('./built.json');
    require('http').createServer((_, response) => response.end(JSON.stringify({ built, run: process.env })))
      .listen(process.env.PORT);`,
  Procfile: 'web: node server.js',
};
const NAMES = ['CI', 'NODE_ENV', 'PGSSLMODE', 'SSL_CERT_FILE', 'LANG', 'OWN'];

describeEngine('postgresql', () => {
  let place: DatabaseWorkshop;
  let service: DeployService;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    service = await startDeployService(place.settings);
  }, 60_000);
  afterAll(async () => {
    await service.clear();
    for (const { id } of await service.sql<{ id: string }>('select id from databases'))
      await service.call('DELETE', `/v2/databases/${id}`);
    await waitFor('the end of all databases', async () =>
      (await service.sql('select 1 from databases')).length ? null : true,
    ).finally(() => service.close());
    place.clear();
  }, 60_000);

  test('a value of the owner wins, and an empty one takes the variable away', async () => {
    const { body } = await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
    await waitFor('the database', async () =>
      (await service.call('GET', `/v2/databases/${body.id}`)).body.status === 'available' ? true : null,
    );
    const application = await service.application(FILES);
    await service.call('POST', `/v2/databases/${body.id}/attachments`, { body: { application_id: application.id } });
    const set = (key: string, value: string): Promise<unknown> =>
      service.call('PUT', `/v2/applications/${application.id}/env/${key}`, { body: { value } });
    const seen = async (): Promise<Record<string, Record<string, string | undefined>>> => {
      expect((await application.deploy()).status).toBe('active');
      const all = JSON.parse((await application.visit()).body) as Record<string, Record<string, string>>;
      return Object.fromEntries(
        Object.entries(all).map(([at, env]) => [at, Object.fromEntries(NAMES.map((name) => [name, env[name]]))]),
      );
    };
    const bundle = expect.stringMatching(/bundle\.pem$/);
    await set('CI', 'false');
    await set('NODE_ENV', 'test');
    const mixed = { CI: 'false', NODE_ENV: 'test', PGSSLMODE: 'require', SSL_CERT_FILE: bundle, LANG: 'C.UTF-8' };
    expect(await seen()).toMatchObject({ built: mixed, run: mixed });
    for (const name of NAMES) await set(name, '');
    const none = {
      CI: undefined,
      NODE_ENV: undefined,
      PGSSLMODE: undefined,
      SSL_CERT_FILE: undefined,
      LANG: undefined,
    };
    expect(await seen()).toEqual({ built: { ...none, OWN: '' }, run: { ...none, CI: '', OWN: '' } });
  }, 120_000);
});
