// A disk for volumes of tests: a directory of a node, which an operator has prepared.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { kubectl, kubectlApply } from '../../cluster/kubectl';
import type { ClusterOfMachine } from '../../cluster/cluster';

/** A storage class with one disk of 1 GiB, which is bound by hand, and grows by hand. */
export async function addDisk({ kubeconfig, directory }: ClusterOfMachine, storageClass: string): Promise<void> {
  const disk = path.join(directory, 'disks', storageClass);
  mkdirSync(disk, { recursive: true });
  await kubectlApply(
    kubeconfig,
    {
      ...{ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: storageClass } },
      ...{ provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'WaitForFirstConsumer' },
      allowVolumeExpansion: true,
    },
    {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: storageClass } },
      spec: {
        ...{ capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], local: { path: disk } },
        ...{ storageClassName: storageClass, persistentVolumeReclaimPolicy: 'Retain' },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['node1'] }] },
            ],
          },
        },
      },
    },
  );
}

export async function removeDisk({ kubeconfig }: ClusterOfMachine, storageClass: string): Promise<void> {
  // Where a test has failed, a claim may still hold it.
  await kubectl(kubeconfig, 'delete', 'pv', storageClass, '--wait=false');
  await kubectl(kubeconfig, 'delete', 'storageclass', storageClass);
}
