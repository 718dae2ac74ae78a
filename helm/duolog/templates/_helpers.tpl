{{- define "duolog.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Names stay below 52 characters: a StatefulSet adds a hash, and "-headless" is added too. */}}
{{- define "duolog.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "duolog.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "duolog.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "duolog.selector" -}}
app.kubernetes.io/name: {{ include "duolog.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "duolog.labels" -}}
{{ include "duolog.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "duolog.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "duolog.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "duolog.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* duolog.toml: what was given, and what the chart knows better. */}}
{{- define "duolog.config" -}}
{{- $kafka := deepCopy .Values.kafka.settings -}}
{{- if .Values.kafka.bootstrapServers -}}
{{- $_ := set $kafka "bootstrap.servers" .Values.kafka.bootstrapServers -}}
{{- end -}}
{{- if .Values.kafka.tls.existingSecret -}}
{{- $kafka = merge $kafka (dict "ssl.ca.location" "/secrets/kafka-tls/ca.crt") -}}
{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- if $kafka -}}
{{- $_ := set $config "kafka" $kafka -}}
{{- end -}}
{{- if $config }}{{ toToml $config }}{{ end -}}
{{- end -}}

{{- define "duolog.probe" -}}
{{- if .root.Values.tls.clientCa -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  path: {{ .path }}
  port: http
  {{- if .root.Values.tls.existingSecret }}
  scheme: HTTPS
  {{- end }}
{{- end -}}
{{- end -}}

{{/* What no schema can say, refused by name. */}}
{{- define "duolog.check" -}}
{{- if gt (int .Values.replicaCount) 1 -}}
{{- fail "OneOwner: a log has one owner at a time, so replicaCount is 1. For more throughput install the chart again, with a log of its own." -}}
{{- end -}}
{{- if and .Values.tls.clientCa (not .Values.tls.existingSecret) -}}
{{- fail "ClientCaWithoutTls: tls.clientCa takes tls.existingSecret, whose ca.crt it uses." -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not .Values.serviceMonitor.token.existingSecret) -}}
{{- fail "MonitorWithoutToken: /metrics takes a token. Make one with `duolog token create --role user --name prometheus`, put it into a Secret, and name that in serviceMonitor.token.existingSecret." -}}
{{- end -}}
{{- if and .Values.kafka.passwords.existingSecret (not .Values.kafka.bootstrapServers) -}}
{{- fail "PasswordsWithoutKafka: kafka.passwords takes kafka.bootstrapServers." -}}
{{- end -}}
{{- range $secret := list "sasl.password" "ssl.key.password" -}}
{{- if hasKey $.Values.kafka.settings $secret -}}
{{- fail (printf "PasswordInValues: %s would be readable in a ConfigMap. Put it into a Secret and name that in kafka.passwords.existingSecret." $secret) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.config "kafka" -}}
{{- fail "KafkaInConfig: give kafka.bootstrapServers and kafka.settings in place of config.kafka." -}}
{{- end -}}
{{- if hasKey .Values.config "token" -}}
{{- fail "PasswordInValues: config.token would be readable in a ConfigMap, and a host needs none." -}}
{{- end -}}
{{- end -}}
