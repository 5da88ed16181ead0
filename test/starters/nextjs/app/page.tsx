export const dynamic = 'force-dynamic';

export default function Page() {
  return <h1>Next.js, rendered at {new Date().toISOString()}</h1>;
}
