// A list of one kind of a project: its table, what an empty one says, its pages, and the form that adds one.
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import type { Query } from '../api/graphql';
import { useMoving } from '../api/use_moving';
import { useQuery, type Action } from '../api/use_query';
import { Form, Problem, Submit } from '../parts/form';
import { Empty, Page, Section, Waiting } from '../parts/page';
import { Paging } from '../parts/paging';
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
  table(items: readonly Item[]): ComponentChildren;
  /** The form that creates one, for those who may. */
  children: ComponentChildren;
}

export function ProjectList<Data, Item>({ id, title, command, children, ...props }: ProjectListProps<Data, Item>) {
  const { query, listOf, isMoving, empty, table } = props;
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(query, { id, cursor });
  const list = data && listOf(data);
  useMoving(Boolean(isMoving && list?.data.some(isMoving)), reload);
  return (
    <Page title={title} projectId={id} command={command}>
      {!list && <Waiting error={error} />}
      {list && error && <Waiting error={error} />}
      {list?.data.length === 0 && (
        <Empty title={empty.title} command={empty.command}>
          {empty.text}
        </Empty>
      )}
      {list && list.data.length > 0 && table(list.data)}
      {list && <Paging cursor={cursor} next={list.next_cursor} go={setCursor} />}
      {list && mayActAs('developer', id) && children}
    </Page>
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
