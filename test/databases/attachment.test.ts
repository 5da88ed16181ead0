// An application that is attached to a database reads it, and goes on reading it after its password was changed.
import { startDeployService, visitHost, QUICK, type DeployService } from '../support/deployments/deploy';
import { describeEngine, openDatabaseWorkshop, type DatabaseWorkshop } from '../support/databases/database_hall';
import { waitFor } from '../support/wait_for';

const SERVER = `
const http = require('http');
const password = new URL(process.env.DATABASE_URL).password;
http.createServer((request, response) => response.end(password)).listen(process.env.PORT);
`;

describeEngine('postgresql', () => {
  let place: DatabaseWorkshop;
  let service: DeployService;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    service = await startDeployService(place.settings);
  }, 60_000);
  afterAll(async () => {
    await service.clear().finally(async () => {
      for (const { id } of await service.sql<{ id: string }>('select id from databases where deleted_at is null'))
        await service.call('DELETE', `/v2/databases/${id}`);
      await waitFor('the end of all databases', async () =>
        (await service.sql('select 1 from databases')).length ? null : true,
      ).finally(() => service.close());
    });
    place.clear();
  }, 60_000);

  test('a new password reaches the application, its preview and a version on its way by a restart', async () => {
    const made = await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
    const { id } = made.body;
    await waitFor('the database', async () =>
      (await service.call('GET', `/v2/databases/${id}`)).body.status === 'available' ? true : null,
    );
    const application = await service.application({ 'server.js': SERVER, Procfile: 'web: node server.js' }, QUICK);
    const attached = await service.call('POST', `/v2/databases/${id}/attachments`, {
      body: { application_id: application.id },
    });
    expect(attached.status).toBe(201);
    expect((await application.deploy()).status).toBe('active');
    const password = async (): Promise<string> =>
      (await service.call('GET', `/v2/databases/${id}/credentials`)).body.password;
    const before = await password();
    expect((await application.visit()).body).toBe(before);

    const place = `/v2/applications/${application.id}/previews`;
    const { body: preview } = await service.call('POST', place, { body: { branch: 'main' } });
    await waitFor('the preview', async () =>
      (await service.call('GET', `${place}/${preview.id}`)).body.status === 'running' ? true : null,
    );
    const previewed = async (): Promise<string> =>
      (await visitHost(service.platform.config.ingressPort, new URL(preview.url).hostname)).body;
    expect(await previewed()).toBe(before);
    // Comes up slowly, so that the password changes while it does.
    application.push({ 'server.js': `setTimeout(() => {${SERVER}}, 2_000);` });
    const onItsWay = await application.ask();
    await waitFor(
      'its start',
      async () => (await service.sql('select 1 from instances where deployment_id = $1', [onItsWay.id]))[0] ?? null,
    );

    await service.call('POST', `/v2/databases/${id}/credentials/rotate`);
    const after = await password();
    expect(after).not.toBe(before);
    await waitFor('the new password in the application', async () =>
      (await application.visit()).body === after ? true : null,
    );
    await waitFor('the new password in the preview', async () => ((await previewed()) === after ? true : null));
    expect((await application.ended(onItsWay.id)).status).toBe('active');
    expect((await application.visit()).body).toBe(after);
    await waitFor('the end of the restart', async () => ((await application.get()).status === 'running' ? true : null));
    const detached = await service.call('DELETE', `/v2/databases/${id}/attachments/${attached.body.id}`);
    expect(detached.status).toBe(204);
    expect(
      (await service.call('GET', `/v2/applications/${application.id}/env`)).body.data.map(
        ({ key }: { key: string }) => key,
      ),
    ).toEqual([]);
    await service.clear();
  }, 180_000);
});
