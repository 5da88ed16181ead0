// An application that is attached to a database reads it, and goes on reading it after its password was changed.
import { startDeployService, QUICK, type DeployService } from '../support/deploy';
import { describeEngine, eventually, inDatabasePlace, type Place } from '../support/database_hall';

const SERVER = `
const http = require('http');
http.createServer((request, response) => response.end(new URL(process.env.DATABASE_URL).password)).listen(process.env.PORT);
`;

describeEngine('postgresql', () => {
  let place: Place;
  let service: DeployService;

  beforeAll(async () => {
    place = inDatabasePlace();
    service = await startDeployService(place.settings);
  }, 60_000);
  afterAll(async () => {
    for (const { id } of await service.sql<{ id: string }>('select id from databases where deleted_at is null')) await service.call('DELETE', `/v2/databases/${id}`);
    await eventually('the end of all databases', async () => ((await service.sql('select 1 from databases')).length ? null : true));
    await service.close();
    place.clear();
  }, 60_000);

  test('a new password reaches the application by a restart, without an outage of its log-in', async () => {
    const made = await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
    const { id } = made.body;
    await eventually('the database', async () => ((await service.call('GET', `/v2/databases/${id}`)).body.status === 'available' ? true : null));
    const application = await service.application({ 'server.js': SERVER, Procfile: 'web: node server.js' }, QUICK);
    const attached = await service.call('POST', `/v2/databases/${id}/attachments`, { body: { application_id: application.id } });
    expect(attached.status).toBe(201);
    expect((await application.deploy()).status).toBe('active');
    const password = async (): Promise<string> => (await service.call('GET', `/v2/databases/${id}/credentials`)).body.password;
    const before = await password();
    expect((await application.visit()).body).toBe(before);

    await service.call('POST', `/v2/databases/${id}/credentials/rotate`);
    const after = await password();
    expect(after).not.toBe(before);
    await eventually('the new password in the application', async () => ((await application.visit()).body === after ? true : null));
    await eventually('the end of the restart', async () => ((await application.get()).status === 'running' ? true : null));
    const detached = await service.call('DELETE', `/v2/databases/${id}/attachments/${attached.body.id}`);
    expect(detached.status).toBe(204);
    expect((await service.call('GET', `/v2/applications/${application.id}/env`)).body.data.map(({ key }: { key: string }) => key)).toEqual([]);
    await service.clear();
  }, 90_000);
});
