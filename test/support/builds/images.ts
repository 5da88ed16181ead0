// Images that tests make by hand: layers are archives of what a test names, the program in them is Debian's static
// busybox.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import type { RegistryClient } from '../registries/registry_client';

/** A file with its content, or any other entry. */
export type Entry = Partial<Header> & { name: string; content?: string | Buffer };

const BUSYBOX = '/bin/busybox';
const APPLETS = ['sh', 'httpd', 'cat', 'echo', 'id', 'ls', 'mkdir', 'sleep', 'wget', 'env', 'pwd', 'test', 'touch'];

export async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack();
  const chunks: Buffer[] = [];
  const read = (async () => {
    for await (const chunk of archive) chunks.push(chunk as Buffer);
  })();
  for (const { content, ...header } of entries) {
    const body = content === undefined ? undefined : Buffer.from(content);
    const full = { mode: 0o644, ...header };
    if (body) archive.entry({ ...full, size: body.length }, body);
    else archive.entry(full, '');
  }
  archive.finalize();
  await read;
  return Buffer.concat(chunks);
}

/** The lowest layer of an image that runs: busybox and links to it. */
export function busyboxLayer(): Promise<Buffer> {
  return tarOf([
    { name: 'bin/', type: 'directory', mode: 0o755 },
    { name: 'bin/busybox', mode: 0o755, content: readFileSync(BUSYBOX) },
    ...APPLETS.map((name) => ({ name: `bin/${name}`, type: 'symlink' as const, linkname: 'busybox' })),
    { name: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\nweb:x:101:102:web:/srv:/bin/sh\n' },
    { name: 'etc/group', content: 'root:x:0:\nweb:x:102:\n' },
  ]);
}

/** A layer with files of a site at /www, which any user of the image may change. */
export function siteLayer(files: Record<string, string>): Promise<Buffer> {
  return tarOf([
    { name: 'www/', type: 'directory', mode: 0o777 },
    ...Object.entries(files).map(([name, content]) => ({ name: `www/${name}`, content, mode: 0o666 })),
  ]);
}

/** Serves /www on PORT. */
export const SERVE = ['/bin/busybox', 'sh', '-c', 'exec busybox httpd -f -p "$PORT" -h /www'];

interface ImageParts {
  layers: readonly Buffer[];
  /** `config` of the image configuration. */
  config?: Record<string, unknown>;
  gzip?: boolean;
  /** Other digests than those of the layers. */
  diffIds?: string[];
}

/** @returns the digest of the manifest */
export async function pushImage(client: RegistryClient, name: string, tag: string, parts: ImageParts): Promise<string> {
  const { layers, config = { Cmd: SERVE }, gzip = false } = parts;
  const diff_ids = parts.diffIds ?? layers.map((layer) => sha256(layer));
  const configuration = Buffer.from(
    JSON.stringify({ architecture: 'amd64', os: 'linux', config, rootfs: { type: 'layers', diff_ids } }),
  );
  const type = (kind: string): string => `application/vnd.oci.image.${kind}`;
  const pushed = [];
  for (const layer of layers) {
    const content = gzip ? gzipSync(layer, { level: 1 }) : layer;
    const mediaType = type(`layer.v1.tar${gzip ? '+gzip' : ''}`);
    pushed.push({ mediaType, digest: await client.pushBlob(name, content), size: content.length });
  }
  const manifest = Buffer.from(
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: type('manifest.v1+json') },
      config: {
        mediaType: type('config.v1+json'),
        digest: await client.pushBlob(name, configuration),
        size: configuration.length,
      },
      layers: pushed,
    }),
  );
  const answer = await client.call('PUT', `/v2/${name}/manifests/${tag}`, manifest, {
    'Content-Type': type('manifest.v1+json'),
  });
  if (answer.status !== 201) throw new Error(`the manifest was answered ${answer.status}: ${answer.body.toString()}`);
  return sha256(manifest);
}

export function sha256(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}
