// An image of a database server from what Debian has installed here, in the containerd of each node, and disks for it.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { kubectl, kubectlApply } from '../../cluster/kubectl';
import { busyboxLayer, sha256, tarOf, type Entry } from '../builds/images';

/** Programs of this machine with their libraries, and the trees that they read, as a layer of an image. */
export function programsLayer(names: readonly string[], trees: readonly string[] = []): Promise<Buffer> {
  const programs = names.map((name) => execFileSync('which', [name]).toString().trim());
  const libraries = programs.flatMap((file) => librariesOf(realpathSync(file)));
  const read = (file: string): Entry => ({ name: file.slice(1), mode: 0o755, content: readFileSync(file) });
  const inTrees = trees.flatMap((tree) =>
    readdirSync(tree, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile())
      .map((one) => path.join(one.parentPath, one.name)),
  );
  return tarOf([
    { name: 'tmp/', type: 'directory', mode: 0o1777 },
    ...['basename', 'dirname', 'mv', 'rm', 'sed', 'sync', 'uname', 'wc', 'chmod'].map((name) => ({
      ...{ name: `bin/${name}`, type: 'symlink' as const, linkname: 'busybox' },
    })),
    ...[...new Set([...libraries, ...programs, ...inTrees])].map(read),
  ]);
}

/** Those of a script are none. */
function librariesOf(file: string): string[] {
  if (readFileSync(file).subarray(0, 2).toString() === '#!') return [];
  const lines = execFileSync('ldd', [file]).toString().split('\n');
  return lines.flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

/** The image of this name with the programs, on all nodes of the cluster. */
export async function importImage(
  cluster: ClusterOfMachine,
  name: string,
  programs: readonly string[],
  trees: readonly string[] = [],
): Promise<void> {
  await importLayers(cluster, name, { layers: [await busyboxLayer(), await programsLayer(programs, trees)] });
}

export async function importLayers(
  { directory }: ClusterOfMachine,
  name: string,
  { layers, path: programPath = '/usr/sbin:/usr/bin:/bin' }: { layers: readonly Buffer[]; path?: string },
): Promise<void> {
  const config = JSON.stringify({
    ...{ architecture: 'amd64', os: 'linux', config: { Env: [`PATH=${programPath}`] } },
    rootfs: { type: 'layers', diff_ids: layers.map(sha256) },
  });
  const file = `${sha256(Buffer.from(config)).slice('sha256:'.length)}.json`;
  const names = layers.map((_, index) => `layer${index}.tar`);
  const archive = path.join(directory, 'database_image.tar');
  writeFileSync(
    archive,
    await tarOf([
      ...layers.map((content, index) => ({ name: names[index] as string, content })),
      { name: file, content: config },
      { name: 'manifest.json', content: JSON.stringify([{ Config: file, RepoTags: [name], Layers: names }]) },
    ]),
  );
  for (let node = 1; existsSync(path.join(directory, `node${node}`)); node += 1) {
    const socket = path.join(directory, `node${node}`, 'containerd.sock');
    execFileSync('ctr', ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', archive], { stdio: 'pipe' });
  }
}

/** What disks of a class are like. `local`: they stay on node1. `shared`: as disks of a network, they follow pods. */
type DiskKind = 'local' | 'shared';

/** A storage class with disks, which all nodes of this machine see. */
export async function addDisks(
  { kubeconfig, directory }: ClusterOfMachine,
  storageClass: string,
  { kind, count }: { kind: DiskKind; count: number },
): Promise<void> {
  const hostnames = { key: 'kubernetes.io/hostname', operator: 'In', values: ['node1'] };
  const disks = Array.from({ length: count }, (_, index) => {
    const name = `${storageClass}-${index}`;
    const place = path.join(directory, 'disks', name);
    mkdirSync(place, { recursive: true });
    chmodSync(place, 0o777);
    return {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name, labels: { disks: storageClass } } },
      spec: {
        ...{ capacity: { storage: '20Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: place } },
        ...{ storageClassName: storageClass, persistentVolumeReclaimPolicy: 'Retain' },
        ...(kind === 'local' && {
          nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostnames] }] } },
        }),
      },
    };
  });
  const provisioner = kind === 'local' ? 'kubernetes.io/no-provisioner' : 'disks.example.com';
  await kubectlApply(
    kubeconfig,
    {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: storageClass } },
      ...{ provisioner, volumeBindingMode: 'WaitForFirstConsumer', allowVolumeExpansion: true },
    },
    ...disks,
  );
}

export async function removeDisks({ kubeconfig }: ClusterOfMachine, storageClass: string): Promise<void> {
  // Where a test has failed, a claim may still hold one.
  await kubectl(kubeconfig, 'delete', 'pv', '-l', `disks=${storageClass}`, '--wait=false');
  await kubectl(kubeconfig, 'delete', 'storageclass', storageClass);
}

/** Arguments of importImage for MariaDB: what its packages install, without configuration. */
export const MARIADB_IMAGE = [
  ['mariadbd', 'mariadb-install-db', 'my_print_defaults', 'resolveip'],
  ['/usr/share/mysql'],
] as const;
