// A workload, as jobs describe it.
import type { Workload } from '../../../drivers/workload';

export function workloadSample(more: Partial<Workload> = {}): Workload {
  return {
    ...{ id: 'wkl_1', project_id: 'prj_1', application_id: 'app_1', preview_id: null, application_name: 'shop' },
    ...{ process_type: 'web', release_id: 'rel_1', instances: 2 },
    image: {
      reference: 'registry.example.com/apps/app_1@sha256:00',
      login: { host: 'registry.example.com', username: 'u', password: 'p', ends_at: '2030-01-01T00:00:00Z' },
    },
    ...{
      command: ['/platform/launch', 'web'],
      is_first_process: true,
      user: { uid: 10_001, gid: 10_001 },
      env: { A: 'b' },
    },
    ...{ priority_class: null, volumes: [], documents: [], reaches: [], port: 8080, health: null },
    ...{ limits: { memory_mb: 256, cpus: 0.5, disk_mb: 1024 }, shutdown_grace_seconds: 10 },
    ...more,
  };
}
