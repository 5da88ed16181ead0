// The files of a bucket, by folders: a folder is what keys have in common up to the next slash.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { asApiError, useAction, useQuery } from '../../api/use_query';
import { DangerZone } from '../../parts/danger_zone';
import { Confirm } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import { Protection } from '../../parts/protection';
import { Paging } from '../../parts/paging';
import { Empty, Page, Section, Table, Waiting } from '../../parts/page';
import { Ago, bytesText } from '../../parts/time';
import { undoOfDelete } from '../../parts/undo';
import { address, navigate } from '../../router';
import { mayActAs } from '../../session';
import { downloadUrl, removeObject } from './presign';
import { Upload } from './upload';
import { projectFlag } from '../../parts/command';

const BUCKET = graphql(`
  query Bucket($id: ID!) {
    getBucket(id: $id) {
      id
      project_id
      name
      region
      access
      versioning
      object_lock
      deletion_protection
      endpoint
      public_url
    }
  }
`);
const OBJECTS = graphql(`
  query BucketObjects($id: ID!, $prefix: String, $cursor: String) {
    listBucketObjects(id: $id, prefix: $prefix, delimiter: "/", limit: 100, cursor: $cursor) {
      data {
        type
        key
        size_bytes
        last_modified_at
      }
      next_cursor
    }
  }
`);
const PROTECT = graphql(`
  mutation ProtectBucket($id: ID!, $input: UpdateBucketInput!) {
    updateBucket(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteBucket($id: ID!) {
    deleteBucket(id: $id)
  }
`);

export type BucketData = ResultOf<typeof BUCKET>['getBucket'];
type StoredObject = ResultOf<typeof OBJECTS>['listBucketObjects']['data'][number];

export function BucketPage({ id }: { id: string }) {
  const { data, error, reload } = useQuery(BUCKET, { id });
  const bucket = data?.getBucket;
  return (
    <Page
      title={bucket?.name ?? 'Bucket'}
      trail={bucket ? [{ href: `/projects/${bucket.project_id}/buckets`, label: 'Buckets' }] : []}
      projectId={bucket?.project_id}
      command={`svc api listBucketObjects ${id}`}
    >
      {!bucket && <Waiting error={error} rows={6} />}
      {bucket && <Files key={address.value.query.get('prefix') ?? ''} bucket={bucket} changed={reload} />}
    </Page>
  );
}

function Files({ bucket, changed }: { bucket: BucketData; changed(): Promise<void> }) {
  const prefix = address.value.query.get('prefix') ?? '';
  const mayChange = mayActAs('developer', bucket.project_id);
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(OBJECTS, { id: bucket.id, prefix, cursor });
  const list = data?.listBucketObjects;
  // A folder that some programs make is an object whose key is the prefix itself.
  const shown = list?.data.filter(({ key }) => key !== prefix);
  return (
    <>
      <Section title="Files">
        <Folders bucket={bucket} prefix={prefix} />
        {mayChange && <Upload bucket={bucket} prefix={prefix} done={reload} />}
        {!list && <Waiting error={error} />}
        {shown?.length === 0 && (
          <Empty
            title={prefix ? 'Nothing is in this folder' : 'The bucket is empty'}
            {...(!prefix && {
              command:
                `svc keys create ${bucket.name}-uploads --bucket ${bucket.name}` + projectFlag(bucket.project_id),
            })}
          >
            Upload files here, or with an access key and any client of S3 at <code>{bucket.endpoint ?? '–'}</code>{' '}
            (region <code>{bucket.region}</code>).
          </Empty>
        )}
        {shown && shown.length > 0 && (
          <Table label="Files" head={['Name', 'Size', 'Changed', '']}>
            {shown.map((object) => (
              <Row
                key={object.key}
                object={object}
                prefix={prefix}
                bucket={bucket}
                mayChange={mayChange}
                reload={reload}
              />
            ))}
          </Table>
        )}
        {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      </Section>
      {mayChange && <Danger bucket={bucket} reload={changed} />}
    </>
  );
}

const folderHref = (id: string, prefix: string): string =>
  `/buckets/${id}${prefix && `?prefix=${encodeURIComponent(prefix)}`}`;

function Folders({ bucket, prefix }: { bucket: BucketData; prefix: string }) {
  const parts = prefix.split('/').slice(0, -1);
  return (
    <nav class="trail" aria-label="Folders">
      <ol>
        <li>
          <a href={folderHref(bucket.id, '')}>{bucket.name}</a>
        </li>
        {parts.map((part, index) => (
          <li key={index}>
            <a href={folderHref(bucket.id, `${parts.slice(0, index + 1).join('/')}/`)}>{part || '(no name)'}</a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface RowProps {
  object: StoredObject;
  prefix: string;
  bucket: BucketData;
  mayChange: boolean;
  reload(): Promise<void>;
}

function Row({ object, prefix, bucket, mayChange, reload }: RowProps) {
  const name = object.key.slice(prefix.length);
  if (object.type === 'prefix')
    return (
      <tr>
        <th scope="row">
          <a href={folderHref(bucket.id, object.key)}>{name}</a>
        </th>
        <td>folder</td>
        <td>–</td>
        <td />
      </tr>
    );
  return (
    <tr>
      <th scope="row">
        <span>{name}</span>
      </th>
      <td>{bytesText(object.size_bytes)}</td>
      <td>
        <Ago time={object.last_modified_at} />
      </td>
      <td>{mayChange && <Actions bucket={bucket} object={object} name={name} reload={reload} />}</td>
    </tr>
  );
}

function Actions({ bucket, object, name, reload }: Omit<RowProps, 'prefix' | 'mayChange'> & { name: string }) {
  const [asks, setAsks] = useState(false);
  const download = useAction(async () => openElsewhere(await downloadUrl(bucket.id, object.key)));
  const remove = async (): Promise<void> => {
    try {
      await removeObject(bucket.id, object.key);
    } catch (error) {
      throw asApiError(error);
    }
    await reload();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => void download.run()}>
        Download<span class="off-screen"> {name}</span>
      </button>{' '}
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Delete<span class="off-screen"> {name}</span>
      </button>
      <Problem error={download.error} />
      {asks && (
        <Confirm
          title={`Delete ${name}?`}
          verb="Delete"
          work={remove}
          done={`${name} was deleted.`}
          onClose={() => setAsks(false)}
        >
          {bucket.versioning
            ? 'The bucket keeps versions: the file disappears from the list, and its versions stay.'
            : 'The bucket keeps no versions: the file cannot be brought back.'}
        </Confirm>
      )}
    </>
  );
}

// The browser shows what it can and saves the rest; in a page of its own, without a way back to this one.
function openElsewhere(url: string): void {
  const link = document.createElement('a');
  Object.assign(link, { href: url, target: '_blank', rel: 'noreferrer', download: '' });
  link.click();
}

function Danger({ bucket, reload }: { bucket: BucketData; reload(): Promise<void> }) {
  const { id, name, project_id, deletion_protection } = bucket;
  return (
    <DangerZone
      kind="bucket"
      name={name}
      projectId={project_id}
      consequence="A bucket with objects is not deleted."
      warning="Uploads that have not ended are aborted."
      isProtected={deletion_protection}
      remove={async () => {
        await request(DELETE, { id });
        navigate(`/projects/${project_id}/buckets`);
      }}
      findUndo={() => undoOfDelete(project_id, id, () => navigate(`/buckets/${id}`))}
    >
      <Protection
        kind="bucket"
        isOn={deletion_protection}
        set={async (on) => {
          await request(PROTECT, { id, input: { deletion_protection: on } });
          await reload();
        }}
      />
    </DangerZone>
  );
}
