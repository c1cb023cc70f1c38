package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
)

// What the API server does with each kind that is created: defaults, then validation.
var strategies = map[string]rest.RESTCreateStrategy{
	"DaemonSet":          daemonset.Strategy,
	"Deployment":         deployment.Strategy,
	"StatefulSet":        statefulset.Strategy,
	"ConfigMap":          configmap.Strategy,
	"Namespace":          namespace.Strategy,
	"Secret":             secret.Strategy,
	"Service":            service.Strategy,
	"ServiceAccount":     serviceaccount.Strategy,
	"NetworkPolicy":      networkpolicy.Strategy,
	"ClusterRole":        clusterrole.Strategy,
	"ClusterRoleBinding": clusterrolebinding.Strategy,
	"PriorityClass":      priorityclass.Strategy,
}

// admit says why the API server would not take an object that was read from this document.
func admit(document []byte, kind string) error {
	strategy, ok := strategies[kind]
	if !ok {
		return fmt.Errorf("no strategy is known for %s", kind)
	}
	object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), document)
	if err != nil {
		return err
	}
	rest.FillObjectMetaSystemFields(object.(metav1.Object))
	ctx := request.WithNamespace(context.Background(), object.(metav1.Object).GetNamespace())
	return rest.BeforeCreate(strategy, ctx, object)
}
