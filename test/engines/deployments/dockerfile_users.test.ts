/** @tier heavy @quarter 4 @covers drivers/builder */
// Dockerfiles whose programs need several users, as nearly all of Debian's kind do, and what such a build may not do.
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startDeployService, type DeployService, type TestApplication } from '../../support/deployments/deploy';
import { debianLayer, debianObstacle } from '../../support/builds/debian_image';
import { freePort } from '../../support/processes/free_port';
import { busyboxLayer, pushImage } from '../../support/builds/images';
import { startRegistryClient, type RegistryClient } from '../../support/registries/registry_client';
import { waitFor } from '../../support/wait_for';
import { needs } from '../../support/runner/programs';

const isRoot = process.getuid?.() === 0;
const obstacle = debianObstacle();
const describeBuilds = obstacle === null ? needs('buildah', 'busybox', 'bwrap').describe : describe.skip;
const SERVE = 'CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p $PORT -h /www"]';

describeBuilds(`Dockerfiles with several users${obstacle === null ? '' : ` (skipped: ${obstacle})`}`, () => {
  let service: DeployService;
  let registryPort: number;
  let base: string;

  beforeAll(async () => {
    registryPort = await freePort();
    service = await startDeployService({ REGISTRY_PORT: String(registryPort) });
    const body = { name: 'bases' };
    const made = await service.call('POST', '/v2/registries', { body, headers: { Prefer: 'wait=20' } });
    expect(made.body.status).toBe('active');
    const client: RegistryClient = startRegistryClient({
      port: registryPort,
      username: 'owner',
      password: service.key,
    });
    base = `localhost:${registryPort}/bases/debian:1`;
    // Its configuration has no history, as tools other than Docker make images.
    await pushImage(client, 'bases/debian', '1', { layers: [await busyboxLayer(), await debianLayer()], gzip: true });
  }, 180_000);

  afterAll(() => service?.close(), 120_000);

  const builds = async (dockerfile: string[], files = {}): Promise<TestApplication> =>
    service.application(
      { Dockerfile: `${[`FROM ${base}`, ...dockerfile].join('\n')}\n`, 'page.txt': 'page\n', ...files },
      { build: { builder: 'dockerfile' } },
    );

  // Two builds, since the base has no history, on a machine that may be busy.
  const deploy = async (application: TestApplication) => application.ended((await application.ask()).id, 200_000);

  test('build with useradd, chown, COPY --chown and apt-get, and run as the user of USER', async () => {
    const application = await builds([
      'RUN useradd app && mkdir -p /www /data/sub && chown -R app:app /data',
      'COPY --chown=app:app page.txt /data/',
      'RUN setpriv --reuid app --regid app --init-groups touch /data/by-app',
      'RUN apt-get update && apt-get install --yes greeting && apt-get update',
      'RUN stat -c %U /data /data/page.txt /data/by-app /usr/share/greeting > /www/index.html',
      'RUN cat /usr/share/greeting/text',
      'USER app',
      'RUN id -un >> /data/who && touch /data/sub/more',
      SERVE,
    ]);
    const deployment = await deploy(application);
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    expect((await application.log(deployment.id)).join('\n')).toMatch(/hello/);
    const owners = isRoot ? ['app', 'app', 'app', '_apt'] : ['root', 'root', 'root', 'root'];
    expect((await application.visit()).body.trim().split('\n')).toEqual(owners);
  }, 240_000);

  test('build with what BuildKit has: mounts with relative targets, several names in ARG, here-documents', async () => {
    const application = await builds([
      'ARG ONE TWO=second THREE="with space"',
      'ENV PLACE=/srv/app',
      'WORKDIR $PLACE',
      'RUN mkdir /www',
      'RUN --mount=type=bind,source=page.txt,target=page.txt \\',
      '    # what docker init writes',
      '    --mount=type=cache,target=/root/.cache \\',
      '    cat page.txt > /www/index.html && echo "$TWO $THREE" >> /www/index.html',
      'RUN <<EOF',
      'set -e',
      'place=/www',
      'echo "of a script" >> $place/index.html',
      'EOF',
      'RUN cat <<-"ONE" >> /www/index.html && cat <<TWO >> /www/index.html',
      '\t$literal',
      'ONE',
      '$PLACE',
      'TWO',
      'COPY --link <<"EOF" /www/copied.txt',
      'copied $literal',
      'EOF',
      SERVE,
    ]);
    const deployment = await deploy(application);
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    const lines = ['page', 'second with space', 'of a script', '$literal', '/srv/app', ''];
    expect((await application.visit()).body).toBe(lines.join('\n'));
    expect((await application.visit('/copied.txt')).body).toBe('copied $literal\n');
  }, 240_000);

  test('keep what RUN --mount=type=cache has for the next build, and not after clear_cache', async () => {
    const lines = (text: string): string[] => [
      `RUN --mount=type=cache,target=/kept echo ${text} >> /kept/builds; mkdir /www; cp /kept/builds /www/index.html`,
      SERVE,
    ];
    const application = await builds(lines('one'));
    expect((await deploy(application)).status_reason).toBe(null);
    // Without a history the first attempt of a build is begun anew.
    const first = (await application.visit()).body;
    expect(first).toMatch(/^(one\n)+$/);
    application.push({ Dockerfile: `${[`FROM ${base}`, ...lines('two')].join('\n')}\n` });
    expect((await deploy(application)).status_reason).toBe(null);
    expect((await application.visit()).body).toMatch(/^(one\n)+(two\n)+$/);
    expect((await application.ended((await application.ask({ clear_cache: true })).id, 200_000)).status).toBe('active');
    expect((await application.visit()).body).toMatch(/^(two\n)+$/);
  }, 240_000);

  test.each([
    [
      ['', '# of course', 'RUN echo before && \\', '  cat /nowhere'],
      /^Line 4 of Dockerfile: `RUN echo before && .*` ended with exit code 1: cat: \/nowhere: No such file/,
    ],
    [
      ['RUN printf "reading\\nError: no package \\033[31mvite\\033[0m\\n    at load (a.js:1)\\n" && exit 2'],
      /^Line 2 of Dockerfile: `RUN printf .*` ended with exit code 2: Error: no package vite\.$/,
    ],
    [
      ['RUN echo starting; kill -9 $$'],
      /^Line 2 of Dockerfile: `RUN echo .*` was ended by signal 9 \(SIGKILL\): starting\.$/,
    ],
    [['RUN true', 'COPY missing.txt /'], /^Line 3 of Dockerfile: there is no `missing.txt` to copy\./],
    [['COPY --chown=nobody-here page.txt /'], /^Line 2 of Dockerfile: the image has no user nobody-here\./],
    [['FROM localhost:1/none:1'], /^Line 2 of Dockerfile: the base image localhost:1\/none:1 could not be pulled: /],
    [['RUN true', 'FOO bar'], /^Line 3 of Dockerfile: FOO is not an instruction of Dockerfiles\.$/],
    [
      ['', 'RUN --mount=type=bind,source=none.txt,target=/x cat /x'],
      /^Line 3 of Dockerfile: there is no `none.txt` in the source to mount\.$/,
    ],
    [['RUN --mount=type=ssh true'], /^Line 2 of Dockerfile: builds have no SSH agent/],
    [
      ['COPY --parents page.txt /'],
      /^Line 2 of Dockerfile: builds of this platform do not know the option --parents of COPY\.$/,
    ],
  ])(
    'say in one sentence why they fail, with the line: %j',
    async (dockerfile, reason) => {
      const application = await builds(dockerfile);
      const deployment = await deploy(application);
      expect(deployment.status).toBe('failed');
      expect(deployment.status_reason).toMatch(reason);
      expect((await application.log(deployment.id)).join('\n')).not.toMatch(/imagebuilder\.|step \{/);
    },
    120_000,
  );

  test('reach nothing of the host, and nothing of them is left', async () => {
    const secret = path.join(service.runtimeDir, 'secret-of-the-host');
    writeFileSync(secret, 'host', { mode: 0o644 });
    const application = await builds([
      'RUN mkdir /www && echo ok > /www/index.html && cp /bin/sh /setuid && chmod 6755 /setuid',
      `RUN ! cat ${secret} && ! cat /proc/1/root${secret} && ! ls ${service.runtimeDir}/releases`,
      'RUN ! mknod /null c 1 3 && ! cat /dev/sda && ! cat /dev/mem && ! echo 1 > /proc/sys/kernel/panic',
      'RUN ! mount -t tmpfs none /data && ! mount -t proc proc /proc',
      ...(isRoot
        ? ['RUN ! chown 65536:65536 /setuid && ! setpriv --reuid 65536 --regid 65536 --clear-groups true']
        : []),
      'RUN ! sh -c "echo 0 0 1 > /proc/self/uid_map"',
      SERVE,
    ]);
    const deployment = await deploy(application);
    expect([deployment.status, deployment.status_reason]).toEqual(['active', null]);
    expect((await application.visit()).body).toBe('ok\n');
    const find = 'find "$0" -perm /6000 -uid 0 -type f 2>/dev/null || :';
    const strangers = execFileSync('sh', ['-c', find, service.runtimeDir]).toString();
    expect(strangers).toBe('');
    await service.call('DELETE', `/v2/applications/${application.id}`);
    await waitFor('no files', () =>
      Promise.resolve(!existsSync(path.join(service.runtimeDir, 'caches', application.id))),
    );
  }, 240_000);
});
