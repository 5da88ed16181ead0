/** @tier heavy @quarter 1 @covers drivers/image jobs/applications/instance */
// What applications can do holds for those from images: scaling, logs, volumes, limits, files of each instance alone.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  base,
  describeImages,
  imageApplication,
  imageName,
  registry,
  service,
  setUpImages,
} from '../../support/builds/image_cases';
import { pushImage, siteLayer } from '../../support/builds/images';
import { waitFor } from '../../support/wait_for';

/** Every start adds a line to a file of the image and to one of the volume; both are shown. */
const NOTE =
  'echo "$SVC_INSTANCE_ID" >> /www/starts; mkdir -p /data; echo start >> /data/starts; ' +
  'echo "instance $SVC_INSTANCE_ID has started"; busybox ln -s /data/starts /www/kept; ' +
  'exec busybox httpd -f -p "$PORT" -h /www';
const WITHIN_MS = 120_000;

async function pushImageThat(tag: string, command: string): Promise<void> {
  await pushImage(registry, 'acme/life', tag, {
    layers: [base, await siteLayer({ starts: '', 'index.html': tag })],
    config: { Cmd: ['/bin/sh', '-c', command], Env: ['PATH=/bin'] },
  });
}

describeImages('the life of an application from an image', () => {
  setUpImages();

  test(
    'three instances answer, each with files that no other one writes; their output is in the logs',
    async () => {
      await pushImageThat('scaled', NOTE);
      const application = await imageApplication(imageName('life:scaled'));
      const first = await application.deploy();
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      const [web] = (await application.get('/processes')).data;
      await application.post(`/processes/${web.id}/scale`, { instances: 3 });
      const seen = new Map<string, string>();
      await waitFor(
        'answers of three instances',
        async () => {
          const { status, body } = await application.visit('/starts');
          if (status === 200) seen.set(body.trim(), body);
          return seen.size >= 3;
        },
        60_000,
      );
      // One line each: nobody sees the line of another one.
      for (const body of seen.values()) expect(body).toMatch(/^ins_\w+\n$/);
      await waitFor('three lines in the logs', async () => {
        const { data } = await application.get('/logs?source=app&limit=100');
        const started = (data as { message: string }[]).filter(({ message }) => message.includes('has started'));
        return started.length >= 3;
      });
      const second = await application.deploy();
      expect([second.status, second.status_reason]).toEqual(['active', null]);
      await waitFor('an answer of the new release alone', async () => {
        const { status, body } = await application.visit('/starts');
        return status === 200 && !seen.has(body.trim());
      });
      expect((await application.visit('/starts')).body).toMatch(/^ins_\w+\n$/);
      // What releases share is as it was pushed.
      for (const { id } of [first, second]) {
        const file = path.join(service.runtimeDir, 'releases', id, 'www/starts');
        if (existsSync(file)) expect(readFileSync(file, 'utf8')).toBe('');
      }
    },
    WITHIN_MS,
  );

  test(
    'a volume stays from release to release',
    async () => {
      await pushImageThat('volume', NOTE);
      const application = await imageApplication(imageName('life:volume'));
      const volume = { name: 'life', size_gb: 1, application_id: application.id, mount_path: '/data' };
      const made = await service.call('POST', '/v2/volumes', { body: volume, headers: { Prefer: 'wait=20' } });
      expect(made.status).toBe(201);
      for (const lines of [1, 2]) {
        const { status, status_reason } = await application.deploy();
        expect([status, status_reason]).toEqual(['active', null]);
        const kept = async (): Promise<boolean> => (await application.visit('/kept')).body === 'start\n'.repeat(lines);
        await waitFor(`${lines} lines`, kept, 30_000);
      }
    },
    WITHIN_MS,
  );

  test(
    'STOPSIGNAL is what a program gets at its stop',
    async () => {
      // SIGTERM is nothing to it: only the signal of the image ends it before the time is over.
      const command = 'trap "" TERM; exec busybox httpd -f -p "$PORT" -h /www';
      await pushImage(registry, 'acme/life', 'signal', {
        layers: [base, await siteLayer({ 'index.html': 'signal' })],
        config: { Cmd: ['/bin/sh', '-c', command], Env: ['PATH=/bin'], StopSignal: 'SIGUSR1' },
      });
      const run = { shutdown_grace_seconds: 300 };
      const application = await imageApplication(imageName('life:signal'), { run });
      const first = await application.deploy();
      expect([first.status, first.status_reason]).toEqual(['active', null]);
      expect((await application.deploy()).status_reason).toBe(null);
      await waitFor(
        'the end of the first instance',
        async () => (await service.sql('select 1 from instances where deployment_id = $1', [first.id])).length === 0,
        60_000,
      );
      const { data } = await application.get('/logs?source=system&limit=100');
      expect((data as { message: string }[]).map(({ message }) => message).join('\n')).toContain(
        'get SIGUSR1, and 300 seconds',
      );
    },
    WITHIN_MS,
  );

  test(
    'STOPSIGNAL SIGQUIT, as nginx has it, at a replacement and at the restart after a failed health check',
    async () => {
      // Nothing ends the server in time but SIGQUIT: 131 is 128 and its number.
      const command =
        'mkdir /www/cgi-bin; printf "#!/bin/sh\\nrm /www/healthy\\necho\\n" > /www/cgi-bin/break; ' +
        'chmod 755 /www/cgi-bin/break; trap "" TERM; busybox httpd -f -p "$PORT" -h /www; ' +
        'echo "$SVC_INSTANCE_ID ended with $?"';
      await pushImage(registry, 'acme/life', 'quit', {
        layers: [base, await siteLayer({ 'index.html': 'quit', healthy: 'yes' })],
        config: { Cmd: ['/bin/sh', '-c', command], Env: ['PATH=/bin'], StopSignal: 'SIGQUIT' },
      });
      const application = await imageApplication(imageName('life:quit'), {
        health_check: { type: 'http', path: '/healthy', interval_seconds: 5, timeout_seconds: 4, failure_threshold: 1 },
        run: { shutdown_grace_seconds: 300 },
      });
      const ends = async (): Promise<string[]> => {
        const { data } = await application.get('/logs?source=app&search=ended%20with&order=asc');
        return (data as { message: string }[]).map(({ message }) => message);
      };
      expect((await application.deploy()).status_reason).toBe(null);
      const [first] = (await application.get('/instances')).data;
      expect((await application.deploy()).status_reason).toBe(null);
      await waitFor('the end of the first instance', async () => (await ends()).length === 1, 60_000);
      const [second] = (await application.get('/instances')).data;
      await application.visit('/cgi-bin/break');
      await waitFor('the end of the second start', async () => (await ends()).length === 2, 60_000);
      expect(await ends()).toEqual([`${first.id} ended with 131`, `${second.id} ended with 131`]);
      await waitFor('its restart', async () => {
        const [again] = (await application.get('/instances')).data;
        return again?.id === second.id && again.status === 'running' && again.restart_count === 1;
      });
    },
    WITHIN_MS,
  );

  test(
    'more memory than the size of the instances has ends it, with the reason',
    async () => {
      await pushImageThat('greedy', 'exec busybox tail /dev/zero');
      const application = await imageApplication(imageName('life:greedy'));
      const { status, status_reason } = await application.deploy();
      expect([status, status_reason]).toEqual(['failed', expect.stringMatching(/memory/i)]);
    },
    WITHIN_MS,
  );

  test('previews show branches of a repository, which an image has not', async () => {
    const application = await imageApplication(imageName('life:scaled'));
    const refused = await service.call('POST', `/v2/applications/${application.id}/previews`, {
      body: { branch: 'main' },
    });
    expect(refused.body.code).toBe('source_not_configured');
  });
});
