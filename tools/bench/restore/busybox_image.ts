// An image of one program, busybox, that serves a page: in the layout of OCI, for skopeo.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

const MEDIA = 'application/vnd.oci.image';

/** @returns the layout, and its tag, as skopeo names them */
export function writeBusyboxImage(folder: string, page: string): string {
  const root = path.join(folder, 'root');
  for (const name of ['bin', 'www', 'tmp']) mkdirSync(path.join(root, name), { recursive: true });
  copyFileSync('/bin/busybox', path.join(root, 'bin/busybox'));
  execFileSync('ln', ['-sf', 'busybox', path.join(root, 'bin/sh')]);
  writeFileSync(path.join(root, 'www/index.html'), page);
  const layout = path.join(folder, 'layout');
  const blobs = path.join(layout, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
  const put = (bytes: Buffer, kind: string): object => {
    writeFileSync(path.join(blobs, digestOf(bytes)), bytes);
    return { mediaType: `${MEDIA}.${kind}`, digest: `sha256:${digestOf(bytes)}`, size: bytes.length };
  };
  const tar = execFileSync('tar', ['-c', '-C', root, '.'], { maxBuffer: 2 ** 26 });
  const layer = put(gzipSync(tar), 'layer.v1.tar+gzip');
  const command = 'exec /bin/busybox httpd -f -p $PORT -h /www';
  const image = {
    ...{ architecture: process.arch === 'x64' ? 'amd64' : process.arch, os: 'linux' },
    config: { Cmd: ['/bin/sh', '-c', command], ExposedPorts: { '8080/tcp': {} } },
    rootfs: { type: 'layers', diff_ids: [`sha256:${digestOf(tar)}`] },
  };
  const config = put(Buffer.from(JSON.stringify(image)), 'config.v1+json');
  const body = { schemaVersion: 2, mediaType: `${MEDIA}.manifest.v1+json`, config, layers: [layer] };
  const manifest = {
    ...put(Buffer.from(JSON.stringify(body)), 'manifest.v1+json'),
    annotations: { 'org.opencontainers.image.ref.name': '1' },
  };
  writeFileSync(path.join(layout, 'oci-layout'), '{"imageLayoutVersion": "1.0.0"}');
  writeFileSync(path.join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
  return `${layout}:1`;
}
