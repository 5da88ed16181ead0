// The objects of a workload, as they are applied.
import { workloadObjects } from '../../../drivers/workload/kubernetes/deployment';
import { workloadSample } from '../../support/kubernetes/workload_sample';

const text = (base64 = ''): string => Buffer.from(base64, 'base64').toString();

describe('documents and addresses beyond the project', () => {
  const workload = workloadSample({
    documents: [
      { path: '/platform/trust/databases.pem', text: 'one' },
      { path: '/platform/trust/bundle.pem', text: 'two' },
    ],
    reaches: [
      { address: '192.0.2.7', port: 10_000 },
      { address: '2001:db8::7', port: 10_001 },
    ],
  });

  test('documents are files of a Secret that may change without a new pod', () => {
    const { documents, deployment } = workloadObjects('platform', workload);
    expect(documents?.immutable).toBeUndefined();
    expect(Object.entries(documents?.data ?? {}).map(([name, data]) => [name, text(data)])).toEqual([
      ['databases.pem', 'one'],
      ['bundle.pem', 'two'],
    ]);
    const pod = deployment.spec?.template.spec;
    expect(pod?.volumes).toEqual([{ name: 'platform-documents', secret: { secretName: documents?.metadata?.name } }]);
    expect(pod?.containers[0]?.volumeMounts).toEqual([
      { name: 'platform-documents', mountPath: '/platform/trust', readOnly: true },
    ]);
    const changed = workloadObjects('platform', { ...workload, documents: [{ path: '/platform/trust/a', text: 'x' }] });
    expect(changed.deployment).toEqual(deployment);
  });

  test('only pods of this workload reach its addresses, at these ports', () => {
    const { egress, deployment } = workloadObjects('platform', workload);
    expect(egress?.spec).toEqual({
      podSelector: { matchLabels: deployment.spec?.selector.matchLabels },
      policyTypes: ['Egress'],
      egress: [
        { to: [{ ipBlock: { cidr: '192.0.2.7/32' } }], ports: [{ port: 10_000, protocol: 'TCP' }] },
        { to: [{ ipBlock: { cidr: '2001:db8::7/128' } }], ports: [{ port: 10_001, protocol: 'TCP' }] },
      ],
    });
  });

  test('a workload without them has neither', () => {
    const { documents, egress, deployment } = workloadObjects('platform', workloadSample());
    expect([documents, egress]).toEqual([null, null]);
    expect(deployment.spec?.template.spec).not.toHaveProperty('volumes');
  });
});

describe('volumes', () => {
  const workload = workloadSample({ volumes: [{ id: 'vol_1', mount_path: '/data' }] });

  test('a pod has its claims, and a group that may write into them', () => {
    const pod = workloadObjects('platform', workload).deployment.spec?.template.spec;
    expect(pod?.volumes).toEqual([{ name: 'vol-1', persistentVolumeClaim: { claimName: 'vol-1' } }]);
    expect(pod?.containers[0]?.volumeMounts).toEqual([{ name: 'vol-1', mountPath: '/data' }]);
    expect(pod?.securityContext).toMatchObject({ fsGroup: 10_001, fsGroupChangePolicy: 'OnRootMismatch' });
  });

  test('all pods of the application are on one machine, and are replaced one after another', () => {
    const { spec } = workloadObjects('platform', workload).deployment;
    const [term] = spec?.template.spec?.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    expect(term?.topologyKey).toBe('kubernetes.io/hostname');
    expect(spec?.template.metadata?.labels).toMatchObject(term?.labelSelector?.matchLabels ?? { none: '' });
    expect(spec?.selector.matchLabels).not.toHaveProperty('platform-api/has-volumes');
    expect(spec?.strategy).toEqual({ type: 'Recreate' });
  });

  test('without them the new pod is ready before the old one goes', () => {
    const { spec } = workloadObjects('platform', workloadSample()).deployment;
    expect(spec?.strategy).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
    expect(spec?.template.spec).not.toHaveProperty('affinity');
  });
});

test('with several instances machines are emptied one instance at a time', () => {
  const { disruption, deployment } = workloadObjects('platform', workloadSample({ instances: 2 }));
  expect(disruption?.spec).toEqual({
    maxUnavailable: 1,
    selector: { matchLabels: deployment.spec?.selector.matchLabels },
  });
  expect(workloadObjects('platform', workloadSample({ instances: 1 })).disruption).toBeNull();
});

test('a priority class is named where there is one', () => {
  const classOf = (priority_class: string | null): string | undefined =>
    workloadObjects('platform', workloadSample({ priority_class })).deployment.spec?.template.spec?.priorityClassName;
  expect([classOf('previews'), classOf(null)]).toEqual(['previews', undefined]);
});

test('a cluster replaces nothing in the command of a health check', () => {
  const command = ['/bin/sh', '-c', 'test -e /proc/$$ && test "$(SVC_INSTANCE_ID)" = "$HOME"'];
  const health = { interval_seconds: 5, timeout_seconds: 1, failure_threshold: 3, start_seconds: 10 };
  const workload = workloadSample({ health: { check: { type: 'command', command }, ...health } });
  const [container] = workloadObjects('platform', workload).deployment.spec?.template.spec?.containers ?? [];
  for (const probe of [container?.startupProbe, container?.readinessProbe, container?.livenessProbe])
    expect(probe?.exec?.command).toEqual(['/bin/sh', '-c', command[2]?.replaceAll('$', '$$$$')]);
});

test('instances of a machine that does not respond start elsewhere after half a minute', () => {
  const pod = workloadObjects('platform', workloadSample()).deployment.spec?.template.spec;
  expect(pod?.tolerations).toEqual([
    { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
    { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 },
  ]);
});

describe('names that people choose are names that a cluster takes', () => {
  const LABEL_VALUE = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
  const OBJECT = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
  const shortest = { application_name: 'shop', process_type: 'web' };

  test.each([
    shortest,
    { application_name: 'shop', process_type: 'mail_worker' },
    { application_name: 'shop', process_type: 'a-' },
    { application_name: 'shop', process_type: `b${'_-'.repeat(14)}_` },
    { application_name: `a${'-b'.repeat(19)}c`, process_type: `c${'_d'.repeat(14)}e` },
  ])('%j', (names) => {
    const documents = [{ path: '/platform/trust/a', text: '' }];
    const project_id = `prj_${'0'.repeat(26)}`;
    const workload = workloadSample({ ...names, documents, project_id, reaches: [{ address: '192.0.2.1', port: 1 }] });
    const { deployment, ...others } = workloadObjects('p'.repeat(32), workload);
    for (const object of [deployment, ...Object.values(others)]) {
      expect(object?.metadata?.name).toMatch(OBJECT);
      expect(object?.metadata?.namespace).toMatch(OBJECT);
      for (const value of Object.values(object?.metadata?.labels ?? {})) expect(value).toMatch(LABEL_VALUE);
    }
    // Those of its pods have eleven and six characters more.
    expect(deployment.metadata?.name?.length).toBeLessThanOrEqual(63 - 17);
    for (const value of Object.values(deployment.spec?.template.metadata?.labels ?? {}))
      expect(value).toMatch(LABEL_VALUE);
    expect(deployment.spec?.template.spec?.containers.map(({ name }) => name)).toEqual([expect.stringMatching(OBJECT)]);
  });

  test('a name that it takes as it is stays as it is', () => {
    const { template } = workloadObjects('platform', workloadSample(shortest)).deployment.spec ?? {};
    expect(template?.spec?.containers[0]?.name).toBe('web');
    expect(template?.metadata?.labels).toMatchObject({ 'app.kubernetes.io/component': 'web' });
  });
});
