/** @tier heavy @quarter 4 @covers drivers/builder */
// Dockerfiles of Git sources, built by buildah in the sandbox and run.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  configuredApplication,
  startDeployService,
  visitHost,
  type DeployService,
} from '../../support/deployments/deploy';
import { freePort } from '../../support/processes/free_port';
import type { GitFiles } from '../../support/git/git_server';
import { busyboxLayer, pushImage, siteLayer } from '../../support/builds/images';
import { startRegistryClient } from '../../support/registries/registry_client';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

const { describe: describeBuilds } = needs('buildah', 'busybox', 'bwrap');

const DOCKERFILE = `FROM scratch AS base
COPY busybox /bin/busybox
RUN ["/bin/busybox", "mkdir", "-p", "/www"]
ARG COLOUR=red
RUN ["/bin/busybox", "sh", "-c", "echo colour $COLOUR > /www/index.html"]
ENV PATH=/bin
USER 101:102
CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p $PORT -h /www"]
`;

const STAGES = `FROM scratch AS tools
COPY busybox /bin/busybox
FROM tools AS runtime
RUN --mount=type=secret,id=npm-token ["/bin/busybox", "sh", "-c", "/bin/busybox mkdir /www; \\
  /bin/busybox wc -c < /run/secrets/npm-token > /www/index.html"]
HEALTHCHECK --interval=1s CMD ["/bin/busybox", "true"]
CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p $PORT -h /www"]
FROM tools AS later
RUN ["/bin/busybox", "false"]
`;

describeBuilds('Dockerfiles', () => {
  let service: DeployService;
  let registryPort: number;

  beforeAll(async () => {
    registryPort = await freePort();
    service = await startDeployService({ REGISTRY_PORT: String(registryPort) });
  }, 120_000);

  afterAll(() => service?.close(), 120_000);

  test('are built with the variables that they name, again after a push, and run', async () => {
    const files: GitFiles = {
      Dockerfile: DOCKERFILE,
      busybox: { mode: '100755', content: readFileSync('/bin/busybox') },
    };
    const application = await service.application(files, { build: { builder: 'dockerfile' } });
    const place = `/v2/applications/${application.id}/env/COLOUR`;
    await service.call('PUT', place, { body: { value: 'blue', available_at: 'build' } });
    const first = await application.deploy();
    expect([first.status, first.status_reason]).toEqual(['active', null]);
    expect(await application.visit()).toMatchObject({ status: 200, body: 'colour blue\n' });
    application.push({ 'README.md': 'more' });
    const second = await application.deploy();
    expect([second.status, second.status_reason]).toEqual(['active', null]);
    expect((await application.visit()).status).toBe(200);
  }, 180_000);

  test('have stages, secrets that stay out of layers, and a HEALTHCHECK; layers are kept', async () => {
    const [token, unnamed] = ['a-token-of-tests-4711', 'never-named-0815'];
    const files: GitFiles = {
      Dockerfile: STAGES,
      busybox: { mode: '100755', content: readFileSync('/bin/busybox') },
    };
    const build = { builder: 'dockerfile', dockerfile_target: 'runtime' };
    const application = await service.application(files, { build });
    for (const [key, value] of Object.entries({ NPM_TOKEN: token, UNNAMED: unnamed })) {
      const body = { value, available_at: 'build' };
      expect((await service.call('PUT', `/v2/applications/${application.id}/env/${key}`, { body })).status).toBe(201);
    }
    const first = await application.deploy();
    expect([first.status, first.status_reason]).toEqual(['active', null]);
    expect((await application.visit()).body).toBe(`${token.length}\n`);
    const [{ settings }] = await service.sql('select settings from releases where deployment_id = $1', [first.id]);
    expect(settings.image.health_check).toMatchObject({ interval_seconds: 1, command: ['/bin/busybox', 'true'] });
    const place = path.join(service.runtimeDir, 'caches', application.id);
    const found = execFileSync('sh', ['-c', `grep -rlae ${token} -e ${unnamed} -- "$0" || :`, place]).toString();
    expect(found).toBe('');
    expect((await application.log(first.id)).join('\n')).not.toContain(token);
    application.push({ 'README.md': 'more' });
    const second = await application.deploy();
    expect([second.status, second.status_reason]).toEqual(['active', null]);
    if ((await application.log(first.id)).some((line) => line.includes('--> ')))
      expect((await application.log(second.id)).join('\n')).toContain('Using cache');
    const wrong = { body: { build: { dockerfile_target: 'nowhere' } } };
    await service.call('PATCH', `/v2/applications/${application.id}/settings`, wrong);
    expect((await application.deploy()).status_reason).toMatch(/no stage nowhere.*dockerfile_target/);
  }, 240_000);

  test('may begin with an image of a registry of the project, and be pushed to it', async () => {
    const made = await service.call('POST', '/v2/registries', {
      body: { name: 'bases' },
      headers: { Prefer: 'wait=20' },
    });
    expect(made.body.status).toBe('active');
    const client = startRegistryClient({ port: registryPort, username: 'owner', password: service.key });
    const layers = [await busyboxLayer(), await siteLayer({ 'index.html': 'of the base\n' })];
    await pushImage(client, 'bases/web', '1', { layers, gzip: true });
    const files = { Dockerfile: `FROM localhost:${registryPort}/bases/web:1\nENV MORE=1\n` };
    const image = `localhost:${registryPort}/bases/built:1`;
    const application = await service.application(files, { build: { builder: 'dockerfile', image } });
    expect((await application.deploy()).status_reason).toBe(null);
    expect((await application.visit()).body).toBe('of the base\n');
    // What was built is in the registry, and runs from there.
    const source = { type: 'image', image };
    const again = await service.call('POST', '/v2/applications', { body: { name: 'from-built', source } });
    const fromBuilt = await configuredApplication(service, again.body);
    expect((await fromBuilt.deploy()).status_reason).toBe(null);
    expect((await fromBuilt.visit()).body).toBe('of the base\n');
    const elsewhere = { body: { build: { image: `localhost:${registryPort}/others/built` } } };
    await service.call('PATCH', `/v2/applications/${application.id}/settings`, elsewhere);
    expect((await application.deploy()).status_reason).toMatch(/no registry of that name/);
    const stranger = await service.newProject({ stranger: true });
    const other = await service.call('POST', '/v2/applications', {
      ...{ key: stranger.key, project: stranger.id },
      body: { name: 'thief', source: { type: 'git', repository_url: service.git.url(application.name) } },
    });
    expect(other.status).toBe(201);
    const place = `/v2/applications/${other.body.id}`;
    const asked = await service.call('POST', `${place}/deployments`, {
      key: stranger.key,
      project: stranger.id,
      body: {},
    });
    const ended = await waitFor('its end', async () => {
      const own = { key: stranger.key, project: stranger.id };
      const { body } = await service.call('GET', `${place}/deployments/${asked.body.id}`, own);
      return ['active', 'failed'].includes(body.status) && body;
    });
    expect(ended.status).toBe('failed');
    // The service only knows how to clear up the first project.
    await service.call('DELETE', place, { key: stranger.key, project: stranger.id });
  }, 240_000);

  test('are built for previews, which push nothing', async () => {
    const made = await service.call('POST', '/v2/registries', {
      ...{ body: { name: 'shown' }, headers: { Prefer: 'wait=20' } },
    });
    expect(made.body.status).toBe('active');
    const image = `localhost:${registryPort}/shown/app:1`;
    const busybox = { mode: '100755' as const, content: readFileSync('/bin/busybox') };
    const build = { builder: 'dockerfile', image };
    const application = await service.application({ Dockerfile: DOCKERFILE, busybox }, { build });
    expect((await application.deploy()).status_reason).toBe(null);
    const images = async (): Promise<string[]> =>
      (await service.call('GET', `/v2/registries/${made.body.id}/images`)).body.data.map(
        ({ digest }: { digest: string }) => digest,
      );
    const pushed = await images();
    expect(pushed).toHaveLength(1);
    const next = { Dockerfile: DOCKERFILE.replace('COLOUR=red', 'COLOUR=green') };
    service.git.commit(application.name, next, { branch: 'next' });
    const { id } = await application.post('/previews', { branch: 'next' });
    const host = await waitFor(
      'the preview',
      async () => {
        const found = await application.get(`/previews/${id}`);
        if (found.status === 'failed') throw new Error(JSON.stringify(found));
        return found.url && new URL(found.url).hostname;
      },
      60_000,
    );
    const { ingressPort } = service.platform.config;
    await waitFor('its answer', async () => (await visitHost(ingressPort, host)).body === 'colour green\n', 120_000);
    expect((await application.visit()).body).toBe('colour red\n');
    expect(await images()).toEqual(pushed);
  }, 240_000);

  test('that fail say so, and builders name what is there', async () => {
    const files = { Dockerfile: 'FROM scratch\nCOPY nothing /\n' };
    const application = await service.application(files, { build: { builder: 'dockerfile' } });
    expect(await application.deploy()).toMatchObject({
      status: 'failed',
      status_reason:
        'Line 2 of Dockerfile: there is no `nothing` to copy. Check the path, and whether .dockerignore leaves it out.',
    });
    const { body } = await service.call('GET', '/v2/buildpack_builders');
    expect(body.data.map(({ id }: { id: string }) => id)).toContain('dockerfile');
  }, 120_000);
});
