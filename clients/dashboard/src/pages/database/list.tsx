import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { DiskUsed } from '../../parts/disk';
import { Field, Select, useFields } from '../../parts/form';
import { Section, Waiting } from '../../parts/page';
import { isUnsettled, Status } from '../../parts/status';
import { navigate } from '../../router';
import { DATABASE_FIELDS, Engine } from '../project';
import { NewSection, ProjectList } from '../project_list';
import { DeletedBackups } from './deleted_backups';
import { projectFlag } from '../../parts/command';
import { memoryText } from '../../parts/sizes';

const DATABASES = graphql(
  `
    query Databases($id: ID!, $cursor: String) {
      listDatabases(project_id: $id, limit: 50, sort: "name", cursor: $cursor) {
        data {
          ...DatabaseFields
        }
        next_cursor
      }
    }
  `,
  [DATABASE_FIELDS],
);
const CATALOG = graphql(`
  query DatabaseCatalog {
    listDatabaseEngines(limit: 100) {
      data {
        id
        name
        versions {
          version
          default
          status
        }
      }
    }
    listDatabasePackages(limit: 100) {
      data {
        id
        name
        engines
        memory_mb
        storage_gb
        max_storage_gb
        price_monthly
        currency
      }
    }
  }
`);
const CREATE = graphql(`
  mutation CreateDatabase($project_id: ID!, $input: CreateDatabaseInput!) {
    createDatabase(project_id: $project_id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteListedDatabase($id: ID!) {
    deleteDatabase(id: $id)
  }
`);

const FIELDS = ['name', 'engine', 'engine_version', 'database_package'];

type Catalog = ResultOf<typeof CATALOG>;

export function Databases({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="Databases"
      query={DATABASES}
      listOf={({ listDatabases }) => listDatabases}
      isMoving={({ status }) => isUnsettled(status)}
      command={`svc db ls${projectFlag(id)}`}
      empty={{
        title: 'No databases yet',
        text:
          'A database is a server of its own, with daily backups. Attach it to an application, or connect from ' +
          'elsewhere.',
        command: `svc db create orders --engine postgresql${projectFlag(id)}`,
      }}
      hrefOf={({ id: one }) => `/databases/${one}`}
      columns={() => ({
        Status: ({ status, status_reason }) => <Status value={status} title={status_reason} />,
        Engine: (database) => <Engine {...database} />,
        Storage: ({ name, storage_gb, storage_used_bytes }) => (
          <DiskUsed name={name} usedBytes={storage_used_bytes} sizeGb={storage_gb} />
        ),
      })}
      deletion={{
        kind: 'database',
        consequence: 'Its data, users, endpoints and replicas go with it. Its backups are kept for their own time.',
        remove: (one) => request(DELETE, { id: one }),
      }}
    >
      <Create projectId={id} />
      <DeletedBackups projectId={id} />
    </ProjectList>
  );
}

function Create({ projectId }: { projectId: string }) {
  const { data, error } = useQuery(CATALOG, {});
  if (data?.listDatabaseEngines.data.length) return <NewDatabase catalog={data} projectId={projectId} />;
  return (
    <Section title="New database">
      {data ? (
        <p class="notice">This installation has no database engine. Its operator installs them.</p>
      ) : (
        <Waiting error={error} />
      )}
    </Section>
  );
}

function NewDatabase({ catalog, projectId }: { catalog: Catalog; projectId: string }) {
  const engines = catalog.listDatabaseEngines.data;
  const first = engines.find(({ id }) => id === 'postgresql')?.id ?? engines[0]?.id ?? '';
  const fields = useFields({ name: '', engine: first, engine_version: '', database_package: '' });
  const { name, engine, engine_version, database_package } = fields.values;
  const action = useAction(async () => {
    const chosen = { ...(engine_version && { engine_version }), ...(database_package && { database_package }) };
    const { createDatabase } = await request(CREATE, { project_id: projectId, input: { name, engine, ...chosen } });
    navigate(`/databases/${createDatabase.id}`);
  });
  return (
    <NewSection title="New database" verb="Create database" action={action} fields={FIELDS}>
      <Field label="Name" {...fields.of('name', action)} required placeholder="orders" />
      <Select
        label="Engine"
        {...fields.of('engine', action)}
        options={engines.map(({ id, name: label }) => ({ value: id, label }))}
        onChange={(value) => fields.set({ engine: value, engine_version: '', database_package: '' })}
      />
      <Select
        label="Version"
        {...fields.of('engine_version', action)}
        options={versionOptions(catalog, engine)}
        onChange={(value) => fields.set({ engine_version: value })}
      />
      <Select
        label="Size"
        {...fields.of('database_package', action)}
        options={sizeOptions(catalog, engine)}
        onChange={(value) => fields.set({ database_package: value })}
      />
    </NewSection>
  );
}

interface Option {
  value: string;
  label: string;
}

function versionOptions({ listDatabaseEngines }: Catalog, engine: string): Option[] {
  const versions = listDatabaseEngines.data.find(({ id }) => id === engine)?.versions ?? [];
  const usual = versions.find((one) => one.default)?.version ?? 'newest';
  return [
    { value: '', label: `Default (${usual})` },
    ...versions.map(({ version }) => ({ value: version, label: version })),
  ];
}

function sizeOptions({ listDatabasePackages }: Catalog, engine: string): Option[] {
  const sizes = listDatabasePackages.data
    .filter(({ engines }) => engines.includes(engine))
    .sort((a, b) => a.memory_mb - b.memory_mb || a.storage_gb - b.storage_gb);
  return [
    { value: '', label: 'Smallest' },
    ...sizes.map(({ id, name, memory_mb, storage_gb, price_monthly, currency }) => ({
      value: id,
      label: `${name}: ${memoryText(memory_mb)} memory, ${storage_gb} GB disk, ${price_monthly} ${currency} a month`,
    })),
  ];
}
