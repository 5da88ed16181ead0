/** @tier heavy @quarter 3 @covers drivers/release_image jobs/deployments/deployment */
// Releases as images: programs of others read them, copy them and run them.
import { nodeApp } from '../../support/git/repositories';
import { skopeo, startPublishing, withContainer, type Publishing } from '../../support/registries/release_images';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('skopeo', 'buildah');

let publishing: Publishing;

beforeAll(async () => {
  publishing = await startPublishing();
}, 120_000);

afterAll(() => publishing?.close(), 120_000);

test('the image of a Node.js release answers as the host does, and skopeo finds what it is made of', async () => {
  const { service, host } = publishing;
  const application = await service.application(nodeApp('one'));
  const deployment = await application.deploy();
  expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
  const image = await publishing.imageOf(application, deployment);
  const login = await publishing.loginFor(image.slice(0, image.indexOf('@')));
  const found = JSON.parse(
    await skopeo('inspect', '--tls-verify=false', '--creds', login, `docker://${host}/${image}`),
  );
  expect(found.Labels['org.opencontainers.image.revision']).toBe(deployment.commit_sha);
  await withContainer({ image: `${host}/${image}`, login }, async ({ get, exec }) => {
    expect(await get('/')).toBe((await application.visit()).body);
    expect((await exec('id', '-u')).trim()).toBe('10001');
  });
}, 120_000);
