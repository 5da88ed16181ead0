// The operation groups, in the order of the specification. `operations` is the published count. Everything served
// beyond the specification is an extension: a whole group with `extension: true`, whose published count is 0, or an
// operation of a published group, marked in its @rest.

export interface Group {
  readonly name: string;
  readonly description: string;
  readonly operations: number;
  /** Not in the specification: all its operations are listed in docs/contract/extensions.tsv. */
  readonly extension?: true;
}

export const groups = [
  { name: 'Identity', operations: 4, description: 'The identity of the caller, its projects, and the error codes.' },
  { name: 'Projects', operations: 7, description: 'Projects, which contain all other resources.' },
  {
    name: 'Approvals',
    operations: 0,
    description: 'Calls that destroy and wait for a second person, and keys that are paused.',
    extension: true,
  },
  { name: 'Applications', operations: 16, description: 'Applications with their settings, logs and metrics.' },
  { name: 'Previews', operations: 5, description: 'Previews of a branch or a pull request.' },
  { name: 'Environment', operations: 3, description: 'Environment variables of an application.' },
  { name: 'Deployments', operations: 7, description: 'Deployments, rollbacks and auto-deploy.' },
  { name: 'Processes', operations: 6, description: 'Process types of an application and their scaling.' },
  {
    name: 'Runs',
    operations: 0,
    description: 'One-off and scheduled commands in the environment of an application.',
    extension: true,
  },
  { name: 'Domains', operations: 5, description: 'Custom domains for applications.' },
  {
    name: 'Databases',
    operations: 42,
    description: 'Managed databases with their users, endpoints, replicas, backups and attachments.',
  },
  { name: 'Volumes', operations: 8, description: 'Persistent volumes.' },
  { name: 'Object storage', operations: 27, description: 'S3-compatible buckets and access keys.' },
  { name: 'DNS', operations: 23, description: 'Authoritative DNS zones and records.' },
  { name: 'CDN', operations: 16, description: 'CDN zones, custom domains and cache purging.' },
  { name: 'Email', operations: 21, description: 'Email domains and relay zones.' },
  { name: 'Observers', operations: 16, description: 'Uptime and metric monitors with notifiers.' },
  { name: 'Integrations', operations: 25, description: 'Git provider integrations and shared repositories.' },
  { name: 'Registries', operations: 11, description: 'Container registries and robot accounts of a project.' },
  {
    name: 'AI',
    operations: 3,
    description: 'Model catalog and usage per project. Inference itself is a separate API.',
  },
  {
    name: 'Stacks',
    operations: 0,
    description: 'A project as one file: plan, apply, export and import.',
    extension: true,
  },
  { name: 'Bin', operations: 0, description: 'Deleted resources that can be restored.', extension: true },
  { name: 'Reference', operations: 8, description: 'Read-only catalogs: regions, packages, engines and presets.' },
] as const satisfies readonly Group[];

type GroupName = (typeof groups)[number]['name'];

const names = new Set<string>(groups.map((group) => group.name));
const extensions = new Set<string>(groups.filter((group: Group) => group.extension).map((group) => group.name));

export function isGroup(text: string): text is GroupName {
  return names.has(text);
}

/** Whether the whole group is an extension. */
export function isExtensionGroup(name: string): boolean {
  return extensions.has(name);
}
