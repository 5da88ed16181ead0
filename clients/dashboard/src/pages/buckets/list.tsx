// The buckets of a project.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { Paging } from '../../parts/paging';
import { Empty, Page, Section, Table, Waiting } from '../../parts/page';
import { bytesText } from '../../parts/time';
import { navigate } from '../../router';
import { mayActAs } from '../../session';
import { projectTabs } from '../project';

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
  { value: 'private', label: 'nobody without a key' },
  { value: 'public_read', label: 'everybody reads its objects' },
] as const;

export function Buckets({ id }: { id: string }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error } = useQuery(BUCKETS, { id, cursor });
  const list = data?.listBuckets;
  return (
    <Page title="Buckets" tabs={projectTabs(id)} projectId={id} command="svc buckets ls">
      {!list && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title="No bucket yet" command="svc buckets create shop-assets">
          A bucket holds files, which programs read and write over the S3 protocol, and people on its page.
        </Empty>
      )}
      {list && list.data.length > 0 && (
        <Table label="Buckets" head={['Name', 'Who may read', 'Objects', 'Size']}>
          {list.data.map((bucket) => (
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
      )}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {mayActAs('developer', id) && <Create projectId={id} />}
    </Page>
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
    <Section title="New bucket">
      <Form action={action}>
        <div class="columns">
          <Field
            label="Name"
            {...fields.of('name', action)}
            required
            placeholder="shop-assets"
            hint="Unique on the platform."
          />
          <Select
            label="Who may read"
            {...fields.of('access', action)}
            options={ACCESS}
            onChange={(access) => fields.set({ access })}
          />
        </div>
        <Problem error={action.error} fields={['name', 'access']} />
        <footer class="actions">
          <Submit action={action}>Create bucket</Submit>
        </footer>
      </Form>
    </Section>
  );
}
