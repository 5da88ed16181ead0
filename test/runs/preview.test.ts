// Runs of previews, as rows and requests.
import { mintId } from '../../core/ids';
import { deployed, type DeployedApplication } from '../support/deployments/deployed';
import { startService, type Answer, type TestService } from '../support/service';

let service: TestService;
let application: DeployedApplication;
let serial = 0;

beforeAll(async () => {
  service = await startService();
  application = await deployed(service, await newApplication());
});
afterAll(() => service?.close());

async function newApplication(): Promise<string> {
  const made = await service.call('POST', '/v2/applications', { body: { name: `previewed-${(serial += 1)}` } });
  expect(made.status).toBe(201);
  return made.body.id;
}

const create = (body: unknown): Promise<Answer> =>
  service.call('POST', `/v2/applications/${application.id}/runs`, { body });

describe('a preview', () => {
  async function preview(of: DeployedApplication, release: string | null): Promise<string> {
    const id = mintId('pvw');
    await service.sql(
      `insert into previews (id, project_id, application_id, branch, hostname, status, from_fork, release_id,
          created_by, created_at, updated_at)
        select $1, project_id, id, $1, $1 || '.example', 'running', false, $3,
          '{"type": "system", "id": null, "name": "Platform"}', now(), now() from applications where id = $2`,
      [id, of.id, release],
    );
    return id;
  }

  test('runs commands with its own release, in a list of its own', async () => {
    const other = await deployed(service, await newApplication());
    await service.sql('update releases set application_id = $2 where id = $1', [other.release, application.id]);
    const preview_id = await preview(application, other.release);
    const { status, body } = await create({ command: 'true', preview_id });
    expect([status, body.preview_id, body.release_id]).toEqual([201, preview_id, other.release]);
    const list = async (query: string): Promise<string[]> =>
      (await service.call('GET', `/v2/applications/${application.id}/runs${query}`)).body.data.map(
        ({ id }: { id: string }) => id,
      );
    expect([await list(''), await list(`?preview_id=${preview_id}`)]).toEqual([[], [body.id]]);
  });

  test('without a release, or of another application, runs nothing', async () => {
    expect(await create({ command: 'true', preview_id: await preview(application, null) })).toMatchObject({
      status: 409,
      body: { code: 'invalid_state', detail: 'The preview has no release in service. Deploy it first.' },
    });
    const other = await deployed(service, await newApplication());
    expect(await create({ command: 'true', preview_id: await preview(other, other.release) })).toMatchObject({
      status: 422,
      body: { code: 'reference_not_found', field: 'preview_id' },
    });
  });
});
