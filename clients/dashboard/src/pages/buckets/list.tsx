// The buckets of a project.
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, Select, useFields } from '../../parts/form';
import { Table } from '../../parts/page';
import { bytesText } from '../../parts/time';
import { navigate } from '../../router';
import { NewSection, ProjectList } from '../project_list';

const BUCKETS = graphql(`
  query Buckets($id: ID!, $cursor: String) {
    listBuckets(project_id: $id, limit: 50, cursor: $cursor, sort: "name") {
      data {
        id
        name
        access
        versioning
        object_count
        size_bytes
      }
      next_cursor
    }
  }
`);
const CREATE = graphql(`
  mutation CreateBucket($project_id: ID!, $input: CreateBucketInput!) {
    createBucket(project_id: $project_id, input: $input) {
      id
    }
  }
`);

export const ACCESS = [
  { value: 'private', label: 'private' },
  { value: 'public_read', label: 'public read' },
] as const;

export function Buckets({ id }: { id: string }) {
  return (
    <ProjectList
      id={id}
      title="Buckets"
      query={BUCKETS}
      listOf={({ listBuckets }) => listBuckets}
      command={`svc buckets ls --project ${id}`}
      empty={{
        title: 'No buckets yet',
        text: 'A bucket holds files, which programs read and write over the S3 protocol, and people on its page.',
        command: `svc buckets create shop-assets --project ${id}`,
      }}
      table={(buckets) => <BucketTable buckets={buckets} />}
    >
      <Create projectId={id} />
    </ProjectList>
  );
}

function BucketTable({ buckets }: { buckets: readonly ResultOf<typeof BUCKETS>['listBuckets']['data'][number][] }) {
  return (
    <Table label="Buckets" head={['Name', 'Access', 'Objects', 'Size']}>
      {buckets.map((bucket) => (
        <tr key={bucket.id}>
          <th scope="row">
            <a href={`/buckets/${bucket.id}`}>{bucket.name}</a>
          </th>
          <td>{ACCESS.find(({ value }) => value === bucket.access)?.label}</td>
          <td>{bucket.object_count.toLocaleString('en')}</td>
          <td>{bytesText(bucket.size_bytes)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Create({ projectId }: { projectId: string }) {
  const fields = useFields({ name: '', access: 'private' });
  const action = useAction(async () => {
    const { name, access } = fields.values;
    const input = { name, access: access as (typeof ACCESS)[number]['value'] };
    const { createBucket } = await request(CREATE, { project_id: projectId, input });
    navigate(`/buckets/${createBucket.id}`);
  });
  return (
    <NewSection title="New bucket" verb="Create bucket" action={action} fields={['name', 'access']}>
      <Field
        label="Name"
        {...fields.of('name', action)}
        required
        placeholder="shop-assets"
        hint="Unique on the platform."
      />
      <Select
        label="Access"
        {...fields.of('access', action)}
        options={ACCESS}
        onChange={(access) => fields.set({ access })}
      />
    </NewSection>
  );
}
