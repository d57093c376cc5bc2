declare module 'virtual:names' {
  const names: Record<
    | 'models' | 'devices' | 'clusters' | 'engines' | 'strategies' | 'schedules' | 'optimizers'
    | 'precisions' | 'attention',
    string[]
  >;
  export default names;
}
