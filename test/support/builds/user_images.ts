// Images with several users, and volumes for their applications.
import { existsSync, lstatSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { service, type ImageApplication } from './image_cases';
import { tarOf } from './images';
import { waitFor } from '../wait_for';

/** Starts as root, as images of databases do, gives the volume to a user and becomes this user. */
const ENTRYPOINT = `#!/bin/sh
set -e
mkdir -p /data /www
if [ "$(id -u)" = 0 ]; then
  chown -R app:app /data /www
  exec setpriv --reuid app --regid app --init-groups "$0" "$@"
fi
id -u >> /data/starts
{ id; stat -c '%U:%G %a %n' /home/app /etc/shadow /srv/private /srv/shared /tmp /data; cat /srv/private/text; } \\
  > /www/index.html 2>&1 || :
cp /data/starts /www/starts
exec /bin/busybox httpd -f -p "$PORT" -h /www
`;

export async function usersLayer(): Promise<Buffer> {
  const app = { uid: 1000, gid: 1000 };
  return tarOf([
    { name: 'etc/passwd', content: 'root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n' },
    { name: 'etc/group', content: 'root:x:0:\napp:x:1000:\nextra:x:44:other,app\nshadow:x:42:\n' },
    { name: 'etc/shadow', mode: 0o640, gid: 42, content: 'secret\n' },
    { name: 'home/app/', type: 'directory', mode: 0o700, ...app },
    { name: 'srv/private/', type: 'directory', mode: 0o700, ...app },
    { name: 'srv/private/text', mode: 0o400, content: 'private\n', ...app },
    { name: 'srv/shared/', type: 'directory', mode: 0o2775, uid: 7, gid: 44 },
    { name: 'bin/setuid', mode: 0o4755, content: readFileSync('/usr/bin/id') },
    { name: 'entrypoint', mode: 0o755, content: ENTRYPOINT },
  ]);
}

export async function volumeOf(
  application: Pick<ImageApplication, 'id'>,
  name: string,
): Promise<{ id: string; files(): string }> {
  const made = await service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 } });
  const id: string = made.body.id;
  await attachVolume(id, application);
  return {
    id,
    files: () => {
      const home = path.join(service.platform.config.volumeDir, id);
      return ['mount/data', 'data'].map((one) => path.join(home, one)).find((one) => existsSync(one)) ?? home;
    },
  };
}

export async function attachVolume(id: string, application: Pick<ImageApplication, 'id'> | null): Promise<void> {
  const isReady = async (): Promise<boolean> =>
    ['available', 'in_use'].includes((await service.call('GET', `/v2/volumes/${id}`)).body.status);
  await waitFor('the volume', isReady, 10_000);
  const body = application ? { application_id: application.id, mount_path: '/data' } : { application_id: null };
  expect((await service.call('PATCH', `/v2/volumes/${id}`, { body })).status).toBe(200);
  await waitFor('the volume', isReady, 10_000);
}

/** What root of the image is on the host. */
export function tenantUser(applicationId: string): number {
  const store = path.join(service.runtimeDir, 'caches', applicationId, 'application.layers');
  const [layer = ''] = readdirSync(store).filter((name) => existsSync(path.join(store, name, 'files/bin/busybox')));
  return lstatSync(path.join(store, layer, 'files/bin/busybox')).uid;
}
