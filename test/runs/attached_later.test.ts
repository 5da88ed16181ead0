/** @tier heavy @quarter 3 @covers jobs/runs jobs/databases/database/trust.ts models/deployments/pending_variables.ts */
// A database that is attached after a release, or detached: what runs has all of its variables or none of them, and the
// application names those that a restart changes.
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { describeEngine, openDatabaseWorkshop, type DatabaseWorkshop } from '../support/databases/database_hall';
import { nodeApp } from '../support/git/repositories';
import { finishedRun, runLog } from '../support/runs/runs';
import { waitFor } from '../support/wait_for';

const NAMES = ['DATABASE_HOST', 'DATABASE_URL', 'NODE_EXTRA_CA_CERTS', 'PGSSLROOTCERT'];
const MANAGED = ['HOST', 'NAME', 'PASSWORD', 'PORT', 'URL', 'USER'].map((part) => `DATABASE_${part}`);

describeEngine('postgresql', () => {
  let place: DatabaseWorkshop;
  let service: DeployService;
  let application: TestApplication;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    service = await startDeployService(place.settings);
  }, 60_000);
  afterAll(async () => {
    await service.clear();
    for (const { id } of await service.sql<{ id: string }>('select id from databases where deleted_at is null'))
      await service.call('DELETE', `/v2/databases/${id}`);
    await waitFor('the end of all databases', async () =>
      (await service.sql('select 1 from databases')).length ? null : true,
    ).finally(() => service.close());
    place.clear();
  }, 60_000);

  const found = async (): Promise<string[]> => {
    const run = await finishedRun(application, `env | cut -d= -f1 | grep -xE '${NAMES.join('|')}' | sort; echo end`);
    return (await runLog(application, run.id)).filter((line) => line !== 'end').sort();
  };
  const pending = async (): Promise<string[]> => {
    const { data } = await service.graphql('query ($id: ID!) { getApplication(id: $id) { pending_variables } }', {
      id: application.id,
    });
    return data.getApplication.pending_variables;
  };
  const restart = async (): Promise<void> => {
    await application.post('/restart', {});
    await waitFor('the restart', async () => ((await application.get()).status === 'running' ? true : null));
  };

  test('a run has all variables of an attachment from the next restart on, and none before', async () => {
    application = await service.application(nodeApp('one'));
    const { id } = (await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } }))
      .body;
    await waitFor('the database', async () =>
      (await service.call('GET', `/v2/databases/${id}`)).body.status === 'available' ? true : null,
    );
    expect(await pending()).toEqual([]);
    expect((await application.deploy()).status).toBe('active');
    const attached = await service.call('POST', `/v2/databases/${id}/attachments`, {
      body: { application_id: application.id },
    });
    expect([await pending(), await found()]).toEqual([MANAGED, []]);
    await restart();
    expect([await pending(), await found()]).toEqual([[], NAMES]);
    await service.call('DELETE', `/v2/databases/${id}/attachments/${attached.body.id}`);
    expect([await pending(), await found()]).toEqual([MANAGED, NAMES]);
    await restart();
    expect([await pending(), await found()]).toEqual([[], []]);
  }, 120_000);
});
