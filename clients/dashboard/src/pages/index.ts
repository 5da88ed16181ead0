// Path -> page. Each group of pages is a file of its own, loaded when one of them is opened.
import type { ComponentType } from 'preact';
import { ActivityPage } from './activity';
import { ProjectHome } from './project';
import { Projects } from './projects';
import { LogIn, Welcome } from './log_in';

// oxlint-disable-next-line typescript/no-explicit-any -- each page has the parameters of its own path
type Load = () => Promise<ComponentType<any>>;

const at = async <Module, Name extends keyof Module>(module: Promise<Module>, name: Name): Promise<Module[Name]> =>
  (await module)[name];

export const pages: readonly (readonly [pattern: string, load: Load])[] = [
  ['/', async () => Projects],
  ['/sign-in', async () => LogIn],
  ['/welcome', async () => Welcome],
  ['/projects/:id', async () => ProjectHome],
  ['/projects/:id/activity', async () => ActivityPage],
  ['/projects/:id/new', () => at(import('./new_application'), 'NewApplication')],
  ['/projects/:id/resources/*', () => at(import('./generic'), 'Resources')],
  ['/projects/:id/databases', () => at(import('./database/list'), 'Databases')],
  ['/applications/:id', () => at(import('./application/overview'), 'ApplicationOverview')],
  ['/applications/:id/deployments', () => at(import('./application/deployments'), 'Deployments')],
  ['/applications/:id/deployments/:deployment_id', () => at(import('./application/deployment'), 'DeploymentPage')],
  ['/applications/:id/logs', () => at(import('./application/logs'), 'ApplicationLogs')],
  ['/applications/:id/metrics', () => at(import('./application/metrics'), 'ApplicationMetrics')],
  ['/applications/:id/environment', () => at(import('./application/environment'), 'Environment')],
  ['/applications/:id/processes', () => at(import('./application/processes'), 'Processes')],
  ['/applications/:id/domains', () => at(import('./application/domains'), 'Domains')],
  ['/applications/:id/runs', () => at(import('./runs/list'), 'Runs')],
  ['/applications/:id/runs/new', () => at(import('./runs/new_run'), 'NewRun')],
  ['/applications/:id/runs/:run_id', () => at(import('./runs/run'), 'RunPage')],
  ['/applications/:id/runs/:run_id/terminal', () => at(import('./runs/terminal'), 'TerminalPage')],
  ['/applications/:id/schedules', () => at(import('./schedules/list'), 'Schedules')],
  ['/applications/:id/schedules/new', () => at(import('./schedules/edit'), 'NewSchedule')],
  ['/applications/:id/schedules/:schedule_id', () => at(import('./schedules/edit'), 'SchedulePage')],
  ['/applications/:id/settings', () => at(import('./application/settings'), 'Settings')],
  ['/projects/:id/volumes', () => at(import('./volumes'), 'Volumes')],
  ['/projects/:id/buckets', () => at(import('./buckets/list'), 'Buckets')],
  ['/buckets/:id', () => at(import('./buckets/bucket'), 'BucketPage')],
  ['/projects/:id/dns', () => at(import('./dns/list'), 'DnsZones')],
  ['/dns/:id', () => at(import('./dns/zone'), 'DnsZone')],
  ['/projects/:id/email_domains', () => at(import('./email_domains/list'), 'EmailDomains')],
  ['/email_domains/:id', () => at(import('./email_domains/domain'), 'EmailDomain')],
  ['/projects/:id/observers', () => at(import('./observers/list'), 'Observers')],
  ['/observers/:id', () => at(import('./observers/observer'), 'ObserverPage')],
  ['/projects/:id/members', () => at(import('./people/members'), 'Members')],
  ['/projects/:id/keys', () => at(import('./people/keys'), 'Keys')],
  ['/projects/:id/file', () => at(import('./stack'), 'StackPage')],
  ['/projects/:id/bin', () => at(import('./bin'), 'Bin')],
  ['/projects/:id/approvals', () => at(import('./approvals/list'), 'Approvals')],
  ['/projects/:id/approvals/:approval_id', () => at(import('./approvals/approval'), 'ApprovalPage')],
  ['/projects/:id/usage', () => at(import('./people/usage'), 'UsagePage')],
  ['/installation/domain', () => at(import('./installation/setup'), 'SetupPage')],
  ['/installation/domain/progress', () => at(import('./installation/setup_progress'), 'SetupProgressPage')],
  ['/installation/alarms', () => at(import('./installation/alarms'), 'AlarmsPage')],
  ['/installation/machine', () => at(import('./installation/machine'), 'MachinePage')],
  ['/installation/disk', () => at(import('./installation/disk'), 'DiskUsePage')],
  ['/installation/work', () => at(import('./installation/work'), 'WorkPage')],
  ['/installation/backups', () => at(import('./installation/backups'), 'InstallationBackupsPage')],
  ['/installation/users', () => at(import('./installation/users'), 'UsersPage')],
  ['/installation/projects', () => at(import('./installation/projects'), 'AllProjectsPage')],
  ['/installation/activity', () => at(import('./installation/activity'), 'AllActivityPage')],
  ['/installation', () => at(import('./installation/installation'), 'InstallationPage')],
  ['/databases/:id', () => at(import('./database/database'), 'DatabaseOverview')],
  ['/databases/:id/connect', () => at(import('./database/connect'), 'Connect')],
  ['/databases/:id/backups', () => at(import('./database/backups'), 'Backups')],
  ['/databases/:id/users', () => at(import('./database/users'), 'DatabaseUsers')],
  ['/databases/:id/metrics', () => at(import('./database/metrics'), 'DatabaseMetrics')],
  ['/databases/:id/extensions', () => at(import('./database/extensions'), 'Extensions')],
  ['/databases/:id/import', () => at(import('./database/imports'), 'Imports')],
  ['/databases/:id/restore', () => at(import('./database/restore'), 'Restore')],
  ['/resources/*', () => at(import('./generic'), 'Resources')],
  ['/settings', () => at(import('./account'), 'AccountPage')],
  ['/search', () => at(import('./search'), 'Search')],
];
