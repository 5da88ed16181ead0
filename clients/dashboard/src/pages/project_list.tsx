// A list of one kind of a project: its table, what an empty one says, its pages, and the form that adds one.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Query } from '../api/graphql';
import { useMoving } from '../api/use_moving';
import { useQuery, type Action } from '../api/use_query';
import { Confirm } from '../parts/dialog';
import { Form, Problem, Submit } from '../parts/form';
import { Empty, Page, Section, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';
import { reversalText } from '../parts/reversal';
import { RowsTable, type Columns } from '../parts/table';
import { undoOfDelete } from '../parts/undo';
import { mayActAs } from '../session';

interface ProjectListProps<Data, Item> {
  /** Of the project. */
  id: string;
  title: string;
  query: Query<Data, { id: string; cursor?: string | null }>;
  listOf(data: Data): { data: readonly Item[]; next_cursor: string | null };
  /** Whether a state of it ends by itself: the page asks again while there is one. */
  isMoving?(item: Item): boolean;
  /** Command of `svc` that lists the same. */
  command: string;
  /** What it is for, and the command that creates one. */
  empty: { title: string; text: string; command: string };
  /** Page of an item. */
  hrefOf(item: Item): string;
  /** Behind its name. @param reload asks for the list again */
  columns(reload: () => Promise<void>): Columns<Item>;
  /** How one is deleted, and what is lost. */
  deletion: Deletion<Item>;
  /** The form that creates one, for those who may; it gets the list again after it did. */
  children: ComponentChildren | ((reload: () => Promise<void>) => ComponentChildren);
}

interface Deletion<Item> {
  /** Such as "bucket". */
  kind: string;
  consequence: string;
  mayDelete?(item: Item): boolean;
  remove(id: string): Promise<unknown>;
}

interface Named {
  id: string;
  name: string;
}

export function ProjectList<Data, Item extends Named>({ id, title, command, ...props }: ProjectListProps<Data, Item>) {
  const { query, listOf, isMoving, empty, children } = props;
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(query, { id, cursor });
  const list = data && listOf(data);
  useMoving(Boolean(isMoving && list?.data.some(isMoving)), reload);
  const mayChange = mayActAs('developer', id);
  return (
    <Page title={title} projectId={id} command={command}>
      {!list && <Waiting error={error} />}
      {list && error && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title={empty.title} command={empty.command}>
          {empty.text}
        </Empty>
      )}
      {list && list.data.length > 0 && (
        <RowsTable<Item>
          label={title}
          rows={list.data}
          keyOf={(item) => item.id}
          columns={{
            Name: (item) => <a href={props.hrefOf(item)}>{item.name}</a>,
            ...props.columns(reload),
            ...(mayChange && {
              '': (item) => <Delete projectId={id} item={item} deletion={props.deletion} reload={reload} />,
            }),
          }}
        />
      )}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {list && mayChange && (typeof children === 'function' ? children(reload) : children)}
    </Page>
  );
}

interface DeleteProps<Item> {
  projectId: string;
  item: Item;
  deletion: Deletion<Item>;
  reload(): Promise<void>;
}

/** Asks for the name, as the page of the item does. */
function Delete<Item extends Named>({ projectId, item, deletion, reload }: DeleteProps<Item>) {
  const [asks, setAsks] = useState(false);
  const { kind, consequence, mayDelete = () => true, remove } = deletion;
  if (!mayDelete(item)) return null;
  const work = async (): Promise<void> => {
    await remove(item.id);
    await reload();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Delete<span class="off-screen"> {item.name}</span>
      </button>
      {asks && (
        <Confirm
          title={`Delete ${item.name}?`}
          verb={`Delete the ${kind}`}
          typed={item.name}
          work={work}
          done={`The ${kind} ${item.name} was deleted.`}
          findUndo={() => undoOfDelete(projectId, item.id, reload)}
          onClose={() => setAsks(false)}
        >
          {consequence} {reversalText('bin', projectId)}
        </Confirm>
      )}
    </>
  );
}

interface NewSectionProps {
  title: string;
  action: Action<void>;
  /** Label of the button. */
  verb: string;
  /** Names of the fields, which show their errors themselves. */
  fields: readonly string[];
  children: ComponentChildren;
}

export function NewSection({ title, action, verb, fields, children }: NewSectionProps) {
  return (
    <Section title={title}>
      <Form action={action}>
        <div class="columns">{children}</div>
        <Problem error={action.error} fields={fields} />
        <footer class="actions">
          <Submit action={action}>{verb}</Submit>
        </footer>
      </Form>
    </Section>
  );
}
