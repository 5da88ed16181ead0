// Variables that were there before their sum was limited, and those of images: what starts a program says so.
import { sealed } from '../../models/environment/environment_variable';
import { mintId } from '../../core/ids';
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { finishedRun } from '../support/runs/runs';

let service: DeployService;
beforeAll(async () => void (service = await startDeployService()), 60_000);
afterAll(() => service?.close(), 60_000);

test('a deployment says how large its variables are, and a run too', async () => {
  const application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
  for (let index = 0; index < 80; index += 1) {
    const place = { application_id: application.id, key: `LARGE_${index}` };
    const { value, value_hash } = sealed(service.platform.secrets, place, 'x'.repeat(32_768));
    await service.sql(
      `insert into environment_variables (id, project_id, application_id, key, value, value_hash, available_at,
          created_at, updated_at) values ($1, $2, $3, $4, $5, $6, 'runtime', now(), now())`,
      [mintId('env'), service.project, application.id, place.key, value, value_hash],
    );
  }
  const failed = await application.deploy();
  expect(failed).toMatchObject({
    status: 'failed',
    status_reason: expect.stringMatching(
      /The environment variables need 26\d{5} bytes together, and no program starts with more than \d+\. Remove some/,
    ),
  });
  expect((await application.visit('/')).status).toBe(200);
  // Of the release before.
  expect(await finishedRun(application, 'true')).toMatchObject({ status: 'succeeded' });
  const changed = await service.call('PUT', `/v2/applications/${application.id}/env/ONE`, { body: { value: '1' } });
  expect(changed).toMatchObject({ status: 403, body: { code: 'quota_exceeded', resource: 'environment_bytes' } });
  const smaller = await service.call('PUT', `/v2/applications/${application.id}/env/LARGE_1`, { body: { value: '' } });
  expect(smaller.status).toBe(200);
}, 60_000);
