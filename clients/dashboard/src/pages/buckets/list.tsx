// The buckets of a project.
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction } from '../../api/use_query';
import { Field, Select, useFields } from '../../parts/form';
import { bytesText } from '../../parts/time';
import { navigate } from '../../router';
import { NewSection, ProjectList } from '../project_list';
import { projectFlag } from '../../parts/command';

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
const DELETE = graphql(`
  mutation DeleteListedBucket($id: ID!) {
    deleteBucket(id: $id)
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
      command={`svc buckets ls${projectFlag(id)}`}
      empty={{
        title: 'No buckets yet',
        text: 'A bucket holds files, which programs read and write over the S3 protocol, and people on its page.',
        command: `svc buckets create shop-assets${projectFlag(id)}`,
      }}
      hrefOf={({ id: one }) => `/buckets/${one}`}
      columns={() => ({
        Access: ({ access }) => ACCESS.find(({ value }) => value === access)?.label,
        Objects: ({ object_count }) => object_count.toLocaleString('en'),
        Size: ({ size_bytes }) => bytesText(size_bytes),
      })}
      deletion={{
        kind: 'bucket',
        consequence: 'A bucket with objects is not deleted.',
        remove: (one) => request(DELETE, { id: one }),
      }}
    >
      <Create projectId={id} />
    </ProjectList>
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
