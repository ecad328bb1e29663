#!/usr/bin/env bash
# Checks packaging/kubernetes against the schemas of Kubernetes, of three versions, unknown fields included, and the ServiceMonitor
# against the Prometheus operator's (which lets unknown fields pass). No cluster is asked. Fetches both schemas (30 MB) once.
set -euo pipefail
cd "$(dirname "$0")/../packaging/kubernetes"

if ! tool=$(../../scripts/get-tool.sh kubernetes-schemas); then
    echo "check-kubernetes: SKIPPED: no schemas" >&2
    exit
fi
for version in 1.29 1.33 1.37; do
    "$tool/bin/kubernetes-validate" --strict --quiet --kubernetes-version "$version" relay.yaml archive.yaml
done
"$tool/bin/python" -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))' <service-monitor.yaml |
    node --input-type=module -e "
        import { readFileSync } from 'node:fs';
        const { ServiceMonitor } = await import('$tool/node_modules/@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor.js');
        new ServiceMonitor(JSON.parse(readFileSync(0))).validate();"
if command -v kubectl >/dev/null; then
    kubectl kustomize . | "$tool/bin/kubernetes-validate" --strict --quiet -
else
    echo "check-kubernetes: kubectl isn't installed here: kustomization.yaml was not applied" >&2
fi
echo "packaging/kubernetes: valid for Kubernetes 1.29, 1.33 and 1.37, and for the Prometheus operator"
