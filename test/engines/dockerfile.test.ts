// Dockerfiles of Git sources, built by buildah in the sandbox and run.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { startDeployService, type DeployService } from '../support/deploy';
import type { GitFiles } from '../support/git_server';
import { hasStaticBusybox } from '../support/images';

function hasBuildah(): boolean {
  try {
    execFileSync('buildah', ['--version']);
    return true;
  } catch {
    return false;
  }
}

const describeBuilds = hasBuildah() && hasStaticBusybox() ? describe : describe.skip;

const DOCKERFILE = `FROM scratch AS base
COPY busybox /bin/busybox
RUN ["/bin/busybox", "mkdir", "-p", "/www"]
ARG COLOUR=red
RUN ["/bin/busybox", "sh", "-c", "echo colour $COLOUR > /www/index.html"]
ENV PATH=/bin
USER 101:102
CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p $PORT -h /www"]
`;

describeBuilds('Dockerfiles', () => {
  let service: DeployService;

  beforeAll(async () => {
    service = await startDeployService();
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

  test('that fail say so, and builders name what is there', async () => {
    const files = { Dockerfile: 'FROM scratch\nCOPY nothing /\n' };
    const application = await service.application(files, { build: { builder: 'dockerfile' } });
    expect(await application.deploy()).toMatchObject({
      status: 'failed',
      status_reason: expect.stringMatching(/exit/),
    });
    const { body } = await service.call('GET', '/v2/buildpack_builders');
    expect(body.data.map(({ id }: { id: string }) => id)).toContain('dockerfile');
  }, 120_000);
});
