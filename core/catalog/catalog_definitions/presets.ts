// Presets and the environment variables that they set.
import type { PresetVariable } from '../catalog_rows';
import type { Needs } from './needs';

/** Initial content of an application: `template` names a built-in source; if it is null, `image` is deployed. */
export interface PresetDefinition {
  id: string;
  name: string;
  description: string;
  category: string;
  image: string | null;
  application_type: string;
  needs: Needs;
  template: string | null;
  processes: { type: string; command: string | null; instances: number }[];
  variables: PresetVariable[];
}

const nodeEnv: PresetVariable = {
  key: 'NODE_ENV',
  description: 'Mode in which Node.js packages run.',
  default: 'production',
  required: false,
};
const unbuffered: PresetVariable = {
  key: 'PYTHONUNBUFFERED',
  description: 'Disables output buffering, so that log lines appear immediately.',
  default: '1',
  required: false,
};
const greeting: PresetVariable = {
  key: 'GREETING',
  description: 'Headline of the page.',
  default: null,
  required: false,
};
const pace: PresetVariable = {
  key: 'WORK_EVERY_SECONDS',
  description: 'Seconds between two jobs of the worker.',
  default: '10',
  required: false,
};
const databaseUrl: PresetVariable = {
  key: 'DATABASE_URL',
  description: 'URL of the PostgreSQL database. Attach a database to set it.',
  default: null,
  required: false,
};

/** The command is determined by the source: its package.json, Procfile or main file. */
const web = { type: 'web', command: null, instances: 1 };

export const presetDefinitions: (PresetDefinition & { template: string })[] = [
  {
    id: 'go-web',
    name: 'Go web server',
    description: 'A web server in Go that listens on PORT.',
    category: 'web',
    image: null,
    application_type: 'xs-256mb',
    needs: { programs: ['go'] },
    template: 'go-web',
    processes: [web],
    variables: [greeting],
  },
  {
    id: 'node-fullstack',
    name: 'Guest book',
    description: 'A page, an API in JavaScript and a PostgreSQL database.',
    category: 'web',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['node', 'npm'] },
    template: 'node-fullstack',
    processes: [web],
    variables: [databaseUrl, nodeEnv],
  },
  {
    id: 'node-web',
    name: 'Node.js web server',
    description: 'A web server in JavaScript that listens on PORT.',
    category: 'web',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['node'] },
    template: 'node-web',
    processes: [web],
    variables: [greeting, nodeEnv],
  },
  {
    id: 'node-worker',
    name: 'Node.js page and worker',
    description: 'A web page and a background worker.',
    category: 'worker',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['node'] },
    template: 'node-worker',
    processes: [web, { type: 'worker', command: null, instances: 1 }],
    variables: [nodeEnv, pace],
  },
  {
    id: 'python-web',
    name: 'Python web server',
    description: 'A web server in Python that listens on PORT.',
    category: 'web',
    image: null,
    application_type: 's-512mb',
    needs: { programs: ['python3'] },
    template: 'python-web',
    processes: [web],
    variables: [greeting, unbuffered],
  },
  {
    id: 'static-site',
    name: 'Static site',
    description: 'Static files.',
    category: 'static',
    image: null,
    application_type: 'xs-256mb',
    needs: {},
    template: 'static-site',
    processes: [web],
    variables: [],
  },
];
