// Everything that the platform can offer. catalogs.ts selects what an installation offers on its host.
import type { Needs } from './catalog_definitions/needs';
import type { BuildpackBuilderRow, Feature } from './catalog_rows';

export interface Prices {
  currency: string;
  hourly: Record<string, string>;
  volume_gb_hourly: string;
}

/** Hourly prices, decimal strings, by the id of the application type or the database package: for each of its nodes. */
export const prices: Prices = {
  currency: 'EUR',
  volume_gb_hourly: '0.0001',
  hourly: {
    'xs-256mb': '0.0035',
    's-512mb': '0.0070',
    'm-1gb': '0.0140',
    'l-2gb': '0.0280',
    'xl-4gb': '0.0560',
    'dev-1vcpu-256mb': '0.0050',
    's-1vcpu-1gb': '0.0200',
    's-1vcpu-2gb': '0.0400',
    'm-2vcpu-4gb': '0.0800',
    'l-4vcpu-8gb': '0.1600',
    'ha-1vcpu-1gb': '0.0200',
    'ha-1vcpu-2gb': '0.0400',
    'ha-2vcpu-4gb': '0.0800',
    'kv-1vcpu-256mb': '0.0050',
    'kv-1vcpu-1gb': '0.0200',
    'kv-2vcpu-4gb': '0.0800',
  },
};

/** Features whose groups are implemented on this platform. */
export const builtFeatures: Feature[] = ['applications', 'databases', 'volumes', 'object_storage', 'registry'];

export const defaultApplicationType = 's-512mb';

export const applicationTypeDefinitions = [
  { id: 'xs-256mb', name: 'Extra small', vcpu: 0.25, memory_mb: 256, disk_gb: 1, max_instances: 5 },
  { id: 's-512mb', name: 'Small', vcpu: 0.5, memory_mb: 512, disk_gb: 2, max_instances: 10 },
  { id: 'm-1gb', name: 'Medium', vcpu: 1, memory_mb: 1024, disk_gb: 4, max_instances: 10 },
  { id: 'l-2gb', name: 'Large', vcpu: 2, memory_mb: 2048, disk_gb: 8, max_instances: 20 },
  { id: 'xl-4gb', name: 'Extra large', vcpu: 4, memory_mb: 4096, disk_gb: 16, max_instances: 20 },
];

export const languageDefinitions: { language: string; needs: Needs }[] = [
  { language: 'go', needs: { programs: ['go'] } },
  { language: 'java', needs: { programs: ['javac'] } },
  { language: 'nodejs', needs: { programs: ['node', 'npm'] } },
  { language: 'php', needs: { programs: ['php', 'php_fpm', 'nginx', 'composer'] } },
  { language: 'python', needs: { programs: ['python3'] } },
  { language: 'ruby', needs: { programs: ['ruby', 'bundler', 'cc'] } },
  { language: 'rust', needs: { programs: ['cargo', 'cc'] } },
  { language: 'static', needs: {} },
];

/** `detects`: it detects the language, so it supports the languages of the host. */
interface BuilderDefinition extends Omit<BuildpackBuilderRow, 'languages'> {
  needs: Needs;
  detects: boolean;
}

export const builderDefinitions: BuilderDefinition[] = [
  {
    id: 'native',
    name: 'Native',
    image: null,
    needs: {},
    description: 'Detects the language of the source and builds it with the runtimes of the platform.',
    detects: true,
    default: true,
    deprecated: false,
  },
  {
    id: 'dockerfile',
    name: 'Dockerfile',
    image: null,
    needs: { programs: ['bubblewrap'], ociBuilder: 'buildah' },
    description: 'Builds the Dockerfile of the source with buildah, and runs the image.',
    detects: false,
    default: false,
    deprecated: false,
  },
];
