// A project with something of everything, as rows: pages have what they show, and nothing has to run for it.
import { deployed, instanceOf } from '../deployments/deployed';
import { startService, type TestService } from '../service';
import { dashboardOf, newPerson, type Window } from './chromium';

export interface Plant {
  application: string;
  deployment: string;
  database: string;
}

/** Names with markup in them are text. */
export const MARKUP = '<img src=x onerror="document.title=1"> & <b>bold</b>';

interface Planted {
  service: TestService;
  planted: Plant;
  /** Of the owner, who has signed in. */
  window: Window;
}

/** The dashboard of a service with something of what an application has, for the tests of a file. */
export function plantedDashboard(use: (opened: Planted) => void | Promise<void>): void {
  let [service, planted]: [TestService?, Plant?] = [];
  dashboardOf(
    async () => {
      service = await startService();
      planted = await plant(service);
      return service;
    },
    (window) => use({ service, planted, window } as Planted),
  );
}

export async function plant(service: TestService): Promise<Plant> {
  await newPerson(service, 'owner@example.org', 'owner');
  await newPerson(service, 'viewer@example.org', 'viewer');
  const made = await service.call('POST', '/v2/applications', {
    body: { name: 'shop', description: MARKUP, preset: 'node-web' },
  });
  const application = await deployed(service, made.body.id);
  await instanceOf(service, application, 'web', { started_at: new Date().toISOString() });
  await service.sql('update projects set description = $2 where id = $1', [service.project, MARKUP]);
  await service.call('PUT', `/v2/applications/${application.id}/env/GREETING`, {
    body: { value: MARKUP },
  });
  await service.call('POST', `/v2/applications/${application.id}/domains`, {
    body: { hostname: 'shop.example.com', dns: 'manual' },
  });
  await logLines(service, application.id, application.deployment, 30);
  const database = await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
  return { application: application.id, deployment: application.deployment, database: database.body.id };
}

/** Lines of a log, the newest now. */
export async function logLines(
  service: Pick<TestService, 'sql' | 'project'>,
  application: string,
  deployment: string,
  count: number,
): Promise<void> {
  await service.sql('select make_observation_day(current_date - n) from generate_series(-1, 1) as n');
  await service.sql(
    `insert into log_lines (at, resource_id, project_id, application_id, deployment_id, source, level, message,
        process_type)
      select now() - make_interval(secs => ($4 - n) / 1000.0), $2, $1, $2, $3, 'app',
        case when n % 10 = 0 then 'error' else 'info' end,
        'line ' || n || case when n = $4::int then $5 else ' of the shop' end, 'web'
      from generate_series(1, $4::int) n`,
    [service.project, application, deployment, count, ` ${MARKUP}`],
  );
}
