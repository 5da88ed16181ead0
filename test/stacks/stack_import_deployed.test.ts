/** @tier heavy @quarter 2 @covers contract/stack/import */
// Projects of Compose that are built here: imported, planned, applied, uploaded, and visited.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startDeployService, visitHost, type DeployService } from '../support/deployments/deploy';
import { needs } from '../support/runner/programs';
import { callImport } from '../support/stacks/import_calls';
import { stacksOf, type Change } from '../support/stacks/stack_calls';
import { waitFor } from '../support/wait_for';

const { describe: describeBuilds } = needs('buildah', 'busybox', 'bwrap');

const BUSYBOX = 'FROM scratch AS tools\nCOPY busybox /bin/busybox\nENV PATH=/bin\n';
const serve = (text: string): string =>
  `RUN ["/bin/busybox", "sh", "-c", "/bin/busybox mkdir /www; echo ${text} > /www/index.html"]\n`;
// Where instances share a network, the platform chooses the port.
const HTTPD = 'CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p ${PORT:-8080} -h /www"]\n';

interface Project {
  files: Record<string, string>;
  /** What each application answers. */
  answers: Record<string, string>;
}

const PROJECTS: [string, Project][] = [
  [
    'one service with arguments and a health check',
    {
      files: {
        'compose.yaml':
          'services:\n  site:\n    build: { context: ., args: { COLOUR: "${COLOUR:-green}" } }\n' +
          '    ports: ["80:8080"]\n' +
          '    healthcheck: { test: "wget -q http://localhost:8080/", interval: 5s, timeout: 2s }\n',
        Dockerfile: `${BUSYBOX}ARG COLOUR\n${serve('colour $COLOUR')}${HTTPD}`,
      },
      answers: { site: 'colour green' },
    },
  ],
  [
    'two services in folders, one with a stage, a volume and a command as a list',
    {
      files: {
        'docker-compose.yml':
          'services:\n  front: { build: ./front, ports: ["8080"], depends_on: [back] }\n' +
          '  back:\n    build: { context: ./back, dockerfile: docker/Dockerfile, target: runtime }\n' +
          '    expose: ["8080"]\n' +
          '    volumes: ["data:/data"]\n    environment: [GREETING=from the volume]\n' +
          '    command: [/bin/busybox, sh, -c, "echo $$GREETING > /data/index.html; ' +
          'exec /bin/busybox httpd -f -p $$PORT -h /data"]\n' +
          'volumes: { data: {} }\n',
        'front/Dockerfile': `${BUSYBOX}${serve('the front')}${HTTPD}`,
        'back/docker/Dockerfile':
          `${BUSYBOX}FROM tools AS runtime\nRUN ["/bin/busybox", "ln", "-s", "/bin/busybox", "/bin/sh"]\n` +
          'FROM tools AS broken\nRUN ["/bin/busybox", "false"]\n',
      },
      answers: { front: 'the front', back: 'from the volume' },
    },
  ],
  [
    'services that extend another one, with a file of variables',
    {
      files: {
        'compose.yaml':
          'services:\n  app: { extends: { file: base.yaml, service: base }, env_file: app.env, ports: [8080] }\n',
        'base.yaml': 'x-base: &base { build: ., restart: always }\nservices: { base: { <<: *base } }\n',
        'app.env': 'NAME="of the file"\n',
        Dockerfile:
          `${BUSYBOX}CMD ["/bin/busybox", "sh", "-c", "/bin/busybox mkdir -p /tmp/www; ` +
          'echo $NAME > /tmp/www/index.html; exec /bin/busybox httpd -f -p $PORT -h /tmp/www"]\n',
      },
      answers: { app: 'of the file' },
    },
  ],
];

describeBuilds('projects of Compose', () => {
  let service: DeployService;
  beforeAll(async () => {
    service = await startDeployService();
  }, 120_000);
  afterAll(() => service?.close(), 120_000);

  test.each(PROJECTS)(
    '%s',
    async (_, { files, answers }) => {
      const imported = await callImport(service, files);
      expect(imported.status).toBe(200);
      const changes = await stacksOf(service).make(imported.body.document);
      const archive = archiveOf(files);
      for (const [name, answer] of Object.entries(answers)) {
        const { resource_id } = changes.find(
          (one: Change) => one.type === 'application' && one.name === name,
        ) as Change;
        await deploy(`/v2/applications/${resource_id}`, archive);
        const { body } = await service.call('GET', `/v2/applications/${resource_id}`);
        const { ingressPort } = service.platform.config;
        await waitFor(answer, async () => (await visitHost(ingressPort, body.default_hostname)).body.trim() === answer);
      }
    },
    240_000,
  );

  async function deploy(application: string, archive: Buffer): Promise<void> {
    const upload = await service.call('POST', `${application}/source_uploads`, { body: {} });
    const sent = await fetch(upload.body.upload_url, { method: 'PUT', body: new Uint8Array(archive) });
    expect(sent.ok).toBe(true);
    const { body } = await service.call('POST', `${application}/deployments`, {
      body: { source_upload_id: upload.body.id },
    });
    await waitFor(
      'an active deployment',
      async () => {
        const { status, status_reason } = (await service.call('GET', `${application}/deployments/${body.id}`)).body;
        if (status === 'failed') throw new Error(status_reason);
        return status === 'active';
      },
      180_000,
    );
  }
});

/** The files, with busybox beside each Dockerfile's context. */
function archiveOf(files: Record<string, string>): Buffer {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'import-'));
  try {
    for (const [name, content] of Object.entries(files)) {
      fs.mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
      fs.writeFileSync(path.join(folder, name), content);
    }
    for (const context of ['.', 'front', 'back'].filter((one) => fs.existsSync(path.join(folder, one))))
      fs.copyFileSync('/bin/busybox', path.join(folder, context, 'busybox'));
    return execFileSync('tar', ['cz', '-C', folder, '.'], { maxBuffer: 2 ** 26 });
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}
